// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
)

// listed is a kind whose lists are measured.
type listed struct {
	kind    *kind
	objects int
	tape    string
}

// listsOf records the kinds whose lists are measured: Pods, which are many, and Nodes, which many
// controllers read all the time.
func listsOf(pods int, dir string) (all []listed, err error) {
	pods = min(pods, 20_000)
	for _, l := range []listed{{kind: podKind, objects: pods}, {kind: nodeKind, objects: max(pods/4, 1)}} {
		if l.tape, err = record(l.kind, l.objects, dir); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// run measures the lists of a kind and prints them.
func (l *listed) run(ctx context.Context, sides []string, turns int, budget int64, out io.Writer, verbose bool) error {
	defer func() { _ = os.Remove(l.tape) }()
	results := map[string][]readings{}
	for range turns {
		for _, side := range sides {
			found, err := (&sideSpec{Case: "lists", Side: side, Kind: l.kind.name, Tape: l.tape, Objects: l.objects, Budget: budget}).run(ctx)
			if err != nil {
				return err
			}
			results[side] = append(results[side], found)
		}
		slices.Reverse(sides) // none is always first
	}
	fmt.Fprintf(out, "# lists of %d %s, CPU of one list; the budget of decoded objects is %d MiB\n", l.objects, l.kind.name, budget>>20)
	l.print(out, results, verbose)
	return nil
}

func (l *listed) print(out io.Writer, results map[string][]readings, verbose bool) {
	column := func(side, name string) (column []float64) {
		for _, found := range results[side] {
			column = append(column, found[name])
		}
		return column
	}
	line := func(name string, a aim) {
		if len(column(setpointSide, name+"-objects")) == 0 || median(column(setpointSide, name+"-objects")) == 0 {
			return // the kind has no such list
		}
		for _, when := range []string{"-first", "-again"} {
			m := measure{name: "list-" + l.kind.name + "-" + name + when, unit: "µs", aim: a,
				ours: column(setpointSide, name+when), theirs: column(clientGoSide, name+when)}
			if when == "-first" {
				m.aim = aim{}
			}
			m.print(out, verbose)
		}
	}
	line("metadata-selected", aim{most: 1})
	line("few-selected", aim{most: 1})
	line("namespace", aim{})
	line("selected", aim{most: 1})
	if l.kind == nodeKind {
		line("all", aim{most: 1.2})
	} else {
		line("all", aim{})
	}
}
