// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// compareBudgets measures the manager with several budgets of decoded objects, which take turns.
func (b *managerBench) compareBudgets(ctx context.Context, out io.Writer) error {
	budgets := strings.Split(b.budgets, ",")
	lines, turn, err := b.budgetCase()
	if err != nil {
		return err
	}
	printMachine(out)
	fmt.Fprintf(out, "# %s: the manager with budgets of decoded objects; %d turn(s), medians, and all turns\n", b.scale, b.turns)
	found := map[string][]readings{}
	for i := range b.turns {
		for _, budget := range budgets {
			fmt.Fprintf(out, "# turn %d, budget %s; load average %s\n", i+1, budget, loadAverage())
			b.extra = []string{"--decoded-budget", budget}
			r, err := turn(ctx)
			if err != nil {
				return fmt.Errorf("measuring %s with a budget of %s: %w", b.scale, budget, err)
			}
			found[budget] = append(found[budget], r)
		}
		slices.Reverse(budgets) // none is always first
	}
	for _, l := range lines {
		for budget := range strings.SplitSeq(b.budgets, ",") {
			var column []float64
			for _, r := range found[budget] {
				column = append(column, r[l.reading])
			}
			fmt.Fprintf(out, "%-36s budget %-6s %8.2f %-6s %.2f\n", l.name, budget, median(column), l.unit, column)
		}
	}
	return nil
}

// budgetCase returns what is measured of a case, and how.
func (b *managerBench) budgetCase() (lines []caseLine, turn func(context.Context) (readings, error), err error) {
	if b.scale == "deployments" {
		lines = []caseLine{
			{name: "idle-memory", unit: "MB", reading: "idle"}, {name: "memory-after", unit: "MB", reading: "after"},
			{name: "cpu-seconds-per-1000-pods", unit: "s", reading: "cpu"}, {name: "pods-created-per-second", unit: perSecond, reading: "rate"},
		}
		return lines, func(ctx context.Context) (readings, error) {
			f, err := b.turn(ctx, b.setpoint, setpointSide)
			return readings{"idle": f.idle, "after": f.after, "cpu": f.cpu, "rate": f.rate}, err
		}, nil
	}
	c, err := scaleCaseNamed(b.scale)
	if err != nil {
		return nil, nil, err
	}
	if b.size == 0 {
		b.size = c.size
	}
	for _, l := range c.lines(b.size) {
		if !l.plain {
			lines = append(lines, l)
		}
	}
	return lines, func(ctx context.Context) (readings, error) {
		r, _, err := b.playCase(ctx, &c, setpointSide)
		return r, err
	}, nil
}
