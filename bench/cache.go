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
	"strings"
)

// cacheBench is the command line of "cache".
type cacheBench struct {
	objects int
	events  int
	turns   int
	kinds   string
	peer    bool
	verbose bool
	profile string

	dir     string
	results map[string][]readings // by kind and side
}

// tinyObjects are what a cache of a small cluster holds.
const tinyObjects = 100

func runCache(ctx context.Context, args []string, out io.Writer) (err error) {
	b := cacheBench{results: map[string][]readings{}}
	flags := flag.NewFlagSet("cache", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.IntVar(&b.objects, "objects", 20_000, "Pods; of other kinds there are fewer, as in a cluster")
	flags.IntVar(&b.events, "events", 20_000, "changes that a watch brings, to measure events with")
	flags.IntVar(&b.turns, "turns", 3, "turns of each side")
	flags.StringVar(&b.kinds, "kinds", "pods,nodes,configmaps,certificates,random", "kinds to measure, by comma")
	flags.BoolVar(&b.peer, "peer", true, "measure client-go too, which needs some 30 KB a Pod while it is filled")
	flags.BoolVar(&b.verbose, "v", false, "print the figures of every turn")
	folderFlag(flags, "profile", &b.profile, "`folder` for CPU profiles of both sides, one for each step; those of the last turn stay")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.objects < 1 || b.events < 1 || b.turns < 1 {
		return fmt.Errorf("measuring caches: --objects %d, --events %d, --turns %d: all must be at least 1", b.objects, b.events, b.turns)
	}
	var chosen []*kind
	for name := range strings.SplitSeq(b.kinds, ",") {
		k, err := kindNamed(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, k)
	}
	if b.dir, err = os.MkdirTemp("", "setpoint-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	printMachine(out)
	fmt.Fprintf(out, "# %d turns, medians; %d changes\n", b.turns, b.events)
	for _, k := range chosen {
		if err := b.measure(ctx, k, out); err != nil {
			return err
		}
	}
	return nil
}

// measure measures one kind and prints what was found.
func (b *cacheBench) measure(ctx context.Context, k *kind, out io.Writer) error {
	n := k.count(b.objects)
	path, err := record(k, max(n, tinyObjects), b.dir)
	if err != nil {
		return err
	}
	t, err := load(k, path)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	fmt.Fprintf(out, "# %d %s of %d bytes\n", n, k.name, len(t.data)/len(t.objects)-recordHeader)
	sides := []string{setpointSide}
	if b.peer {
		sides = append(sides, clientGoSide)
		if k == podKind {
			sides = append(sides, transformSide)
		}
	}
	for range b.turns {
		for _, side := range sides {
			if err := b.play(ctx, t, "", &sideSpec{Case: "cache", Side: side, Kind: k.name, Objects: n, Events: b.events, Profile: b.profile}); err != nil {
				return err
			}
			if k != podKind || side == transformSide {
				continue
			}
			if err := b.play(ctx, t, "tiny ", &sideSpec{Case: "cache", Side: side, Kind: k.name, Objects: tinyObjects}); err != nil {
				return err
			}
		}
		slices.Reverse(sides) // neither is always first
	}
	b.print(out, k, n)
	return nil
}

// play measures one side in a process of its own, while this one is its server.
func (b *cacheBench) play(ctx context.Context, t *tape, prefix string, s *sideSpec) error {
	r, err := newReplay(t, s.Objects)
	if err != nil {
		return err
	}
	return serve(ctx, r, func(address string) error {
		s.Server = address
		found, err := s.run(ctx)
		if err != nil {
			return err
		}
		key := prefix + s.Kind + " " + s.Side
		b.results[key] = append(b.results[key], found)
		return nil
	})
}

// column are the readings of one name of a side, times a factor.
func (b *cacheBench) column(key, name string, factor float64) (column []float64) {
	for _, found := range b.results[key] {
		column = append(column, found[name]*factor)
	}
	return column
}

func (b *cacheBench) print(out io.Writer, k *kind, n int) {
	pods := k == podKind
	line := func(name, unit, reading string, factor float64, a aim) {
		if !pods && a.value == 0 {
			a = aim{} // the aims were taken from Pods
		}
		m := measure{name: k.name + "-" + name, unit: unit, aim: a,
			ours: b.column(k.name+" "+setpointSide, reading, factor), theirs: b.column(k.name+" "+clientGoSide, reading, factor)}
		m.print(out, b.verbose)
	}
	each := 1 / float64(n)
	line("heap-per-object", "B", "heap", each, aim{most: 1. / 15})
	line("heap-per-object-after-changes", "B", "heap-after", each, aim{most: 1. / 15})
	if pods {
		m := measure{name: "pods-heap-vs-transform", unit: "B",
			ours: b.column("pods "+setpointSide, "heap", each), theirs: b.column("pods "+transformSide, "heap", each)}
		m.print(out, b.verbose)
		name := "million-pods-heap-projected"
		if n >= 1_000_000 {
			name = "million-pods-heap"
		}
		m = measure{name: name, unit: "MB", aim: aim{value: 500},
			ours: b.column("pods "+setpointSide, "heap", each), theirs: b.column("pods "+clientGoSide, "heap", each)}
		m.print(out, b.verbose)
	}
	line("sync-cpu-per-object", "µs", "sync-cpu", each*1e6, aim{most: 0.25})
	line("sync-wall", "s", "sync-wall", 1, aim{})
	line("events-per-second-metadata", perSecond, "events", 1, aim{least: 4})
	line("event-cpu-metadata", "µs", "events-cpu", 1, aim{})
	line("events-per-second-decoded", perSecond, "events-decoded", 1, aim{})
	line("event-cpu-decoded", "µs", "events-decoded-cpu", 1, aim{})
	line("get-warm", "ns", "get-warm", 1, aim{most: 2})
	cold := aim{}
	if pods {
		cold.value = 20
	}
	line("get-cold", "µs", "get-cold", 1, cold)
	line("get-cold-cpu", "µs", "get-cold-cpu", 1, aim{})
	line("list-namespace-per-object", "µs", "list-namespace", 1, aim{})
	line("list-selected", "ms", "list-selected", 1, aim{})
	if pods {
		m := measure{name: fmt.Sprintf("tiny-heap-of-%d-pods", tinyObjects), unit: "KB",
			ours: b.column("tiny pods "+setpointSide, "heap", 1e-3), theirs: b.column("tiny pods "+clientGoSide, "heap", 1e-3)}
		m.print(out, b.verbose)
	}
}
