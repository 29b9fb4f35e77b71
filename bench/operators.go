// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/operators"
)

// operatorBench is the command line of "operators".
type operatorBench struct {
	bin       string
	operators string
	size      int
	turns     int
	clients   int
	verbose   bool
}

// The sides of an operator: its binary with the line that makes its cache, and as it is.
const (
	withLine    = "with NewCache"
	withoutLine = "with the cache of controller-runtime"
)

// runOperators is the case "operators".
func runOperators(ctx context.Context, args []string, out io.Writer) error {
	var b operatorBench
	flags := flag.NewFlagSet("operators", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&b.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries; those of the operators are built there")
	flags.StringVar(&b.operators, "operators", "cluster-api,trust-manager", "operators to measure, by comma")
	flags.IntVar(&b.size, "size", 20_000, "objects that an operator caches")
	flags.IntVar(&b.turns, "turns", 3, "turns of each side")
	flags.IntVar(&b.clients, "clients", 32, "clients that create the objects")
	flags.BoolVar(&b.verbose, "v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.size < 1 || b.turns < 1 || b.clients < 1 {
		return fmt.Errorf("measuring operators: --size %d, --turns %d, --clients %d: all must be at least 1", b.size, b.turns, b.clients)
	}
	var chosen []*subject
	for name := range strings.SplitSeq(b.operators, ",") {
		s, err := subjectNamed(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, s)
	}
	printMachine(out)
	for _, s := range chosen {
		if err := b.one(ctx, out, s); err != nil {
			return fmt.Errorf("measuring %s: %w", s.operator, err)
		}
	}
	return nil
}

// one measures one operator.
func (b *operatorBench) one(ctx context.Context, out io.Writer, s *subject) (err error) {
	o, err := operators.Named(s.operator)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# %s: %s, %d turns, medians\n", o.Module, s.describe(b.size), b.turns)
	dir, err := filepath.Abs(filepath.Join(b.bin, ".operators", o.Name))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // of a run that was killed
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binaries, err := s.build(ctx, out, o, dir)
	if err != nil {
		return fmt.Errorf("building %s: %w", o.Module, err)
	}
	c, err := startCluster(ctx, b.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	at, err := newScene(c, b.size, b.clients)
	if err != nil {
		return err
	}
	found, err := b.measure(ctx, out, &operated{scene: at, subject: s, population: s.populate(at, dir)}, binaries)
	if err != nil {
		return err
	}
	b.print(out, s, found)
	return nil
}

// measure runs both sides in turns: without objects once, and then with all.
func (b *operatorBench) measure(ctx context.Context, out io.Writer, of *operated, binaries map[string]string) (map[string][]readings, error) {
	found := map[string][]readings{}
	sides := []string{withLine, withoutLine}
	if err := of.define(ctx); err != nil {
		return nil, err
	}
	empty := map[string]float64{}
	for _, side := range sides {
		r, _, err := of.turn(ctx, binaries[side], 0)
		if err != nil {
			return nil, fmt.Errorf("measuring %s without objects: %w", side, err)
		}
		empty[side] = r["heap"]
	}
	began := time.Now()
	if err := of.create(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "# the objects were created in %s\n", time.Since(began).Round(time.Second))
	// What the operator writes because of new objects, it writes once.
	_, requests, err := of.turn(ctx, binaries[withoutLine], of.reconciles(b.size))
	if err != nil {
		return nil, fmt.Errorf("writing what is new: %w", err)
	}
	size, err := of.bytes(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "# a run before the first turn wrote what is new: %s; a %s is %d bytes of JSON\n", requests, of.object, size)
	for turn := range b.turns {
		for _, side := range sides {
			fmt.Fprintf(out, "# turn %d, %s; load average %s\n", turn+1, side, loadAverage())
			r, requests, err := of.turn(ctx, binaries[side], of.reconciles(b.size))
			if err != nil {
				return nil, fmt.Errorf("measuring %s: %w", side, err)
			}
			fmt.Fprintf(out, "# %s: %.0f requests: %s\n", side, requests.total(), requests)
			r["heap-object"] = (r["heap"] - empty[side]) * 1e6 / float64(b.size)
			found[side] = append(found[side], r)
		}
		slices.Reverse(sides) // neither is always first
	}
	return found, nil
}

func (b *operatorBench) print(out io.Writer, s *subject, found map[string][]readings) {
	for _, l := range []struct{ name, unit, reading string }{
		{"heap", "MB", "heap"},
		{"heap-of-a-" + strings.ToLower(s.object), "B", "heap-object"},
		{"memory-at-rest", "MB", "memory"},
		{"peak-memory", "MB", "peak"},
		{"cpu-until-at-rest", "s", "cpu"},
		{"seconds-until-reconciled", "s", "wall"},
	} {
		column := func(side string) (column []float64) {
			for _, r := range found[side] {
				column = append(column, r[l.reading])
			}
			return column
		}
		m := measure{name: s.operator + "-" + l.name, unit: l.unit, ours: column(withLine), theirs: column(withoutLine)}
		m.print(out, b.verbose)
	}
	fmt.Fprintf(out, "# load average %s\n", loadAverage())
}
