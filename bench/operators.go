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
	"time"

	"github.com/setpoint-io/setpoint/internal/operators"
)

// operatorBench is the command line of "operators".
type operatorBench struct {
	bin     string
	size    int
	turns   int
	clients int
	verbose bool
}

// The sides of an operator: its binary with the line that makes its cache, and as it is.
const (
	withLine    = "with NewCache"
	withoutLine = "with the cache of controller-runtime"
)

// runOperators is the case "operators".
func runOperators(ctx context.Context, args []string, out io.Writer) (err error) {
	var b operatorBench
	flags := flag.NewFlagSet("operators", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&b.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries; those of the operator are built there")
	flags.IntVar(&b.size, "size", 20_000, "Machines")
	flags.IntVar(&b.turns, "turns", 3, "turns of each side")
	flags.IntVar(&b.clients, "clients", 32, "clients that create the objects")
	flags.BoolVar(&b.verbose, "v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.size < 1 || b.turns < 1 || b.clients < 1 {
		return fmt.Errorf("measuring operators: --size %d, --turns %d, --clients %d: all must be at least 1", b.size, b.turns, b.clients)
	}
	printMachine(out)
	o, err := operators.Named("cluster-api")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# %s: its core manager, %d Machines in MachineSets of %d, %d turns, medians\n", o.Module, b.size, machinesOfSet, b.turns)
	dir, err := filepath.Abs(filepath.Join(b.bin, ".operators", o.Name))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // of a run that was killed
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binaries, err := buildOperator(ctx, out, o, dir)
	if err != nil {
		return fmt.Errorf("building %s: %w", o.Module, err)
	}
	c, err := startCluster(ctx, b.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	f, err := newFleet(c, b.size, b.clients, filepath.Join(dir, "core", "config", "crd", "bases"))
	if err != nil {
		return err
	}
	found, err := b.measure(ctx, out, f, binaries)
	if err != nil {
		return err
	}
	b.print(out, found)
	return nil
}

// measure runs both sides in turns: without objects once, and then with all.
func (b *operatorBench) measure(ctx context.Context, out io.Writer, f *fleet, binaries map[string]string) (map[string][]readings, error) {
	found := map[string][]readings{}
	sides := []string{withLine, withoutLine}
	if err := f.defineKinds(ctx); err != nil {
		return nil, err
	}
	empty := map[string]float64{}
	for _, side := range sides {
		r, _, err := f.turn(ctx, binaries[side], 0)
		if err != nil {
			return nil, fmt.Errorf("measuring %s without objects: %w", side, err)
		}
		empty[side] = r["heap"]
	}
	began := time.Now()
	if err := f.create(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "# the objects were created in %s; a Machine is %d bytes of JSON\n", time.Since(began).Round(time.Second), f.machineBytes)
	// What the manager writes to new objects, it writes once.
	_, requests, err := f.turn(ctx, binaries[withoutLine], b.size)
	if err != nil {
		return nil, fmt.Errorf("writing what is new: %w", err)
	}
	fmt.Fprintf(out, "# a run before the first turn wrote what is new: %s\n", requests)
	for turn := range b.turns {
		for _, side := range sides {
			fmt.Fprintf(out, "# turn %d, %s; load average %s\n", turn+1, side, loadAverage())
			r, requests, err := f.turn(ctx, binaries[side], b.size)
			if err != nil {
				return nil, fmt.Errorf("measuring %s: %w", side, err)
			}
			fmt.Fprintf(out, "# %s: %.0f requests: %s\n", side, requests.total(), requests)
			r["heap-machine"] = (r["heap"] - empty[side]) * 1e6 / float64(b.size)
			found[side] = append(found[side], r)
		}
		slices.Reverse(sides) // neither is always first
	}
	return found, nil
}

func (b *operatorBench) print(out io.Writer, found map[string][]readings) {
	for _, l := range []struct{ name, unit, reading string }{
		{"operator-heap", "MB", "heap"},
		{"operator-heap-of-a-machine", "B", "heap-machine"},
		{"operator-memory-at-rest", "MB", "memory"},
		{"operator-peak-memory", "MB", "peak"},
		{"operator-cpu-until-at-rest", "s", "cpu"},
		{"operator-seconds-until-reconciled", "s", "wall"},
	} {
		column := func(side string) (column []float64) {
			for _, r := range found[side] {
				column = append(column, r[l.reading])
			}
			return column
		}
		m := measure{name: l.name, unit: l.unit, ours: column(withLine), theirs: column(withoutLine)}
		m.print(out, b.verbose)
	}
	fmt.Fprintf(out, "# load average %s\n", loadAverage())
}
