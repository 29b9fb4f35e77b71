// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// company is the readers that run while a store is written.
type company struct {
	name  string
	count int
	spins bool // and touches nothing; otherwise it lists everything, in a loop
}

var companies = []company{
	{name: "alone"}, {name: "1-listing", count: 1}, {name: "10-listing", count: 10}, {name: "10-spinning", count: 10, spins: true},
}

// runReaders is the case "readers".
func runReaders(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("readers", flag.ContinueOnError)
	flags.SetOutput(out)
	objects := flags.Int("objects", 160_000, "Pods in the cache")
	turns := flags.Int("turns", 1, "turns of each side")
	span := flags.Duration("span", 2*time.Second, "how long each rate is measured")
	only := flags.String("only", "", "measure only \"writes\", beside readers, or only \"lists\"")
	budget := flags.Int64("budget", 512, "MiB of decoded objects that Setpoint may keep while lists are measured")
	peer := flags.Bool("peer", true, "measure client-go too, which needs some 30 KB a Pod while it is filled")
	verbose := flags.Bool("v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *objects < 1 || *turns < 1 || *span <= 0 {
		return fmt.Errorf("measuring readers: --objects %d, --turns %d, --span %s: all must be positive", *objects, *turns, *span)
	}
	if *only != "" && *only != "writes" && *only != "lists" || *budget < 0 {
		return fmt.Errorf("measuring readers: --only %q is neither writes nor lists, or --budget %d is negative", *only, *budget)
	}
	dir, err := os.MkdirTemp("", "setpoint-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	printMachine(out)
	fmt.Fprintf(out, "# %d Pods, %d turns, medians, rates over %s\n", *objects, *turns, *span)
	if *only != "lists" {
		if err := measureWrites(ctx, *objects, *turns, *span, *peer, *verbose, dir, out); err != nil {
			return err
		}
	}
	if *only == "writes" {
		return nil
	}
	kinds, err := listsOf(*objects, dir)
	if err != nil {
		return err
	}
	sides := []string{setpointSide}
	if *peer {
		sides = append(sides, clientGoSide)
	}
	for _, l := range kinds {
		if err := l.run(ctx, sides, *turns, *budget<<20, out, *verbose); err != nil {
			return err
		}
	}
	return nil
}

// measureWrites measures how fast a store is written beside readers.
func measureWrites(ctx context.Context, objects, turns int, span time.Duration, peer, verbose bool, dir string, out io.Writer) error {
	path, err := record(podKind, objects, dir)
	if err != nil {
		return err
	}
	sides := []string{setpointSide}
	if peer {
		sides = append(sides, clientGoSide, indexerSide)
	}
	results := map[string][]readings{}
	for range turns {
		for _, side := range sides {
			found, err := (&sideSpec{Case: "readers", Side: side, Kind: podKind.name, Tape: path, Objects: objects, Span: span}).run(ctx)
			if err != nil {
				return err
			}
			results[side] = append(results[side], found)
		}
		slices.Reverse(sides) // none is always first
	}
	printReaders(out, results, verbose)
	return nil
}

func printReaders(out io.Writer, results map[string][]readings, verbose bool) {
	column := func(side, name string) (column []float64) {
		for _, found := range results[side] {
			column = append(column, found[name])
		}
		return column
	}
	line := func(name, unit, reading, side string, a aim) {
		m := measure{name: name, unit: unit, ours: column(setpointSide, reading), theirs: column(side, reading), aim: a}
		m.print(out, verbose)
	}
	for _, c := range companies {
		a := aim{}
		if c.count > 1 && !c.spins {
			a.least = 100
		}
		line("writes-"+c.name, perSecond, "writes-"+c.name, clientGoSide, a)
		line("writes-"+c.name+"-vs-indexer", perSecond, "writes-"+c.name, indexerSide, a)
		line("lag-"+c.name, "ms", "lag-"+c.name, clientGoSide, aim{})
	}
	line("lists-10-listing", perSecond, "lists-10-listing", clientGoSide, aim{})
	m := measure{name: "writes-10-listing-vs-spinning", unit: perSecond, aim: aim{least: 0.8},
		ours: column(setpointSide, "writes-10-listing"), theirs: column(setpointSide, "writes-10-spinning")}
	m.print(out, verbose)
}
