// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
)

// runRelist is the case "relist".
func runRelist(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("relist", flag.ContinueOnError)
	flags.SetOutput(out)
	objects := flags.Int("objects", 50_000, "Pods in the cache")
	changed := flags.Int("changed", 10, "percentage of them that changed before they are listed again")
	turns := flags.Int("turns", 1, "turns of each side")
	peer := flags.Bool("peer", true, "measure client-go too, which needs some 30 KB a Pod while it is filled")
	verbose := flags.Bool("v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *objects < 1 || *turns < 1 || *changed < 0 || *changed > 100 {
		return fmt.Errorf("measuring relists: --objects %d, --turns %d, --changed %d: not all in range", *objects, *turns, *changed)
	}
	printMachine(out)
	fmt.Fprintf(out, "# %d Pods, %d%% of them changed, %d turns, medians\n", *objects, *changed, *turns)
	t, err := tapeOf(podKind, *objects)
	if err != nil {
		return err
	}
	sides := []string{setpointSide}
	if *peer {
		sides = append(sides, clientGoSide)
	}
	for _, way := range []struct {
		name      string
		listsOnly bool
	}{{"streamed", false}, {"listed", true}} {
		results := map[string][]readings{}
		for range *turns {
			for _, side := range sides {
				r, err := newReplay(t, *objects)
				if err != nil {
					return err
				}
				r.listsOnly = way.listsOnly
				err = serve(ctx, r, func(address string) error {
					s := sideSpec{Case: "relist", Side: side, Kind: podKind.name, Server: address, Objects: *objects, Events: *objects * *changed / 100}
					found, err := s.run(ctx)
					results[side] = append(results[side], found)
					return err
				})
				if err != nil {
					return err
				}
			}
			slices.Reverse(sides) // neither is always first
		}
		printRelist(out, "relist-"+way.name, results, *verbose)
	}
	return nil
}

func printRelist(out io.Writer, name string, results map[string][]readings, verbose bool) {
	line := func(what, unit string, a aim, pick func(readings) float64) {
		m := measure{name: name + "-" + what, unit: unit, aim: a}
		for _, found := range results[setpointSide] {
			m.ours = append(m.ours, pick(found))
		}
		for _, found := range results[clientGoSide] {
			m.theirs = append(m.theirs, pick(found))
		}
		m.print(out, verbose)
	}
	reading := func(name string) func(readings) float64 { return func(found readings) float64 { return found[name] } }
	line("heap-over-steady", "x", aim{value: 1.3}, func(found readings) float64 { return found["peak"] / found["steady"] })
	line("live-over-steady", "x", aim{value: 1.3}, func(found readings) float64 { return found["peak-live"] / found["steady-live"] })
	line("heap-steady", "MB", aim{}, reading("steady"))
	line("heap-peak", "MB", aim{}, reading("peak"))
	line("live-steady", "MB", aim{}, reading("steady-live"))
	line("live-peak", "MB", aim{}, reading("peak-live"))
	line("wall", "s", aim{}, reading("wall"))
	line("cpu", "s", aim{}, reading("cpu"))
}
