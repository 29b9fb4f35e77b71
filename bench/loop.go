// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// loopBench is the command line of "loop".
type loopBench struct {
	bin     string
	objects int
	events  int
	paced   int
	rate    int
	writes  int
	turns   int
	workers int
	verbose bool
	profile string
	record  bool
	peer    string // the side to compare with

	results map[string][]readings // by case and side
}

// writeRate is how many changes a second are made where each leads to a write: a
// tenth of what an API server can take, so that it is not the server that is late.
const writeRate = 50

func runLoop(ctx context.Context, args []string, out io.Writer) (err error) {
	b := loopBench{results: map[string][]readings{}}
	flags := flag.NewFlagSet("loop", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&b.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries")
	flags.IntVar(&b.objects, "objects", 20_000, "Pods")
	flags.IntVar(&b.events, "events", 20_000, "changes that come at once; no more than Pods, so that each is a reconcile")
	flags.IntVar(&b.paced, "paced", 5000, "changes that come one by one, for the latency")
	flags.IntVar(&b.rate, "rate", 1000, "of these, a second")
	flags.IntVar(&b.writes, "writes", 1000, "ConfigMaps on a real API server, for reconciles that write; 0 leaves these out")
	flags.IntVar(&b.turns, "turns", 5, "turns of each side")
	flags.IntVar(&b.workers, "workers", 1, "workers of each controller")
	flags.BoolVar(&b.verbose, "v", false, "print the figures of every turn")
	folderFlag(flags, "profile", &b.profile, "`folder` for CPU profiles of both sides, of the last burst of changes")
	flags.BoolVar(&b.record, "record", false, "compare with the same loop without a record of its runs, instead of controller-runtime")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b.peer = controllerRuntimeSide
	if b.record {
		b.peer = unrecordedSide
	}
	if b.events < 1 || b.events > b.objects || b.paced < 1 || b.paced > b.objects || b.rate < 1 || b.turns < 1 || b.workers < 1 || b.writes < 0 {
		return fmt.Errorf("measuring loops: --objects %d, --events %d, --paced %d, --rate %d, --writes %d, --turns %d, --workers %d: "+
			"want events and paced no more than objects, writes at least 0, and the others at least 1",
			b.objects, b.events, b.paced, b.rate, b.writes, b.turns, b.workers)
	}
	dir, err := os.MkdirTemp("", "setpoint-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := record(podKind, b.objects, dir)
	if err != nil {
		return err
	}
	t, err := load(podKind, path)
	if err != nil {
		return err
	}
	printMachine(out)
	fmt.Fprintf(out, "# controller-runtime %s; %d turns, medians; %d worker(s); %d Pods\n",
		moduleVersion("sigs.k8s.io/controller-runtime"), b.turns, b.workers, b.objects)
	sides := []string{setpointSide, b.peer}
	for range b.turns {
		if b.record {
			if err := b.playPairs(ctx, t); err != nil {
				return err
			}
			continue
		}
		for _, side := range sides {
			if err := b.play(ctx, t, side); err != nil {
				return err
			}
		}
		slices.Reverse(sides) // neither is always first
	}
	if b.writes > 0 {
		if err := b.playWrites(ctx, sides); err != nil {
			return err
		}
	}
	b.print(out)
	return nil
}

// play measures reconciles that write nothing, in a process of their own, while
// this one is their server.
func (b *loopBench) play(ctx context.Context, t *tape, side string) error {
	r, err := newReplay(t, b.objects)
	if err != nil {
		return err
	}
	return serve(ctx, &pacedReplay{r}, func(address string) error {
		s := sideSpec{Case: "loop", Side: side, Kind: t.kind.name, Server: address, Objects: b.objects, Events: b.events,
			Paced: b.paced, Rate: b.rate, Workers: b.workers, Profile: b.profile}
		return b.note(ctx, &s)
	})
}

// playPairs measures the loop with and without a record, both in one process, each with a server of its own.
func (b *loopBench) playPairs(ctx context.Context, t *tape) error {
	ours, err := newReplay(t, b.objects)
	if err != nil {
		return err
	}
	theirs, err := newReplay(t, b.objects)
	if err != nil {
		return err
	}
	return serve(ctx, ours, func(recorded string) error {
		return serve(ctx, theirs, func(unrecorded string) error {
			s := sideSpec{Case: "loop-pairs", Side: setpointSide, Kind: t.kind.name, Server: recorded, Beside: unrecorded,
				Objects: b.objects, Events: b.events, Workers: b.workers}
			return b.note(ctx, &s)
		})
	})
}

func (b *loopBench) note(ctx context.Context, s *sideSpec) error {
	found, err := s.run(ctx)
	if err != nil {
		return err
	}
	key := s.Case + " " + s.Side
	b.results[key] = append(b.results[key], found)
	return nil
}

// playWrites measures reconciles that write, against one real API server, which
// each side has for itself while its turn lasts.
func (b *loopBench) playWrites(ctx context.Context, sides []string) (err error) {
	c, err := startCluster(ctx, b.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	for turn := range b.turns {
		for _, side := range sides {
			s := sideSpec{Case: "loop-write", Side: side, Kind: configMapKind.name, Kubeconfig: c.kubeconfig,
				Namespace: fmt.Sprintf("%s-%d", side, turn), Objects: b.writes, Paced: min(b.writes, 300), Rate: writeRate, Workers: b.workers}
			if err := b.note(ctx, &s); err != nil {
				return err
			}
		}
		slices.Reverse(sides)
	}
	return nil
}

func (b *loopBench) print(out io.Writer) {
	line := func(which, name, unit, reading string, a aim) {
		column := func(side string) (column []float64) {
			for _, found := range b.results[which+" "+side] {
				column = append(column, found[reading])
			}
			return column
		}
		m := measure{name: name, unit: unit, aim: a, ours: column(setpointSide), theirs: column(b.peer)}
		m.print(out, b.verbose)
	}
	if b.record {
		paired := func(name, unit, reading string, a aim) {
			m := measure{name: name, unit: unit, aim: a}
			for _, found := range b.results["loop-pairs "+setpointSide] {
				m.ours = append(m.ours, found[reading+" "+setpointSide])
				m.theirs = append(m.theirs, found[reading+" "+unrecordedSide])
			}
			m.print(out, b.verbose)
		}
		paired("noop-cpu-per-reconcile", "µs", "cpu", aim{most: 1.02})
		paired("noop-reconciles-per-second", perSecond, "rate", aim{})
		paired("reading-cpu-per-reconcile", "µs", "cpu-reading", aim{})
		if b.writes > 0 {
			line("loop-write", "writing-cpu-per-reconcile", "µs", "cpu", aim{})
		}
		return
	}
	line("loop", "noop-reconciles-per-second", perSecond, "rate", aim{least: 3})
	line("loop", "noop-cpu-per-reconcile", "µs", "cpu", aim{})
	line("loop", "noop-event-to-reconcile-p50", "ms", "p50", aim{})
	line("loop", "noop-event-to-reconcile-p99", "ms", "p99", aim{most: 0.5})
	line("loop", "reading-reconciles-per-second", perSecond, "rate-reading", aim{})
	line("loop", "reading-cpu-per-reconcile", "µs", "cpu-reading", aim{})
	if b.writes > 0 {
		line("loop-write", "writing-reconciles-per-second", perSecond, "rate", aim{})
		line("loop-write", "writing-cpu-per-reconcile", "µs", "cpu", aim{})
		line("loop-write", "write-to-reconcile-p50", "ms", "p50", aim{})
		line("loop-write", "write-to-reconcile-p99", "ms", "p99", aim{most: 0.5})
	}
}

// pacedReplay is a replay that also makes changes one by one, and says when.
type pacedReplay struct{ *replay }

// pacedPath asks for changes, so many at such a rate. The answer is a list of
// pacedChange, once all have been made.
const pacedPath = "/paced"

// pacedChange says which object changed when, in nanoseconds since 1970: both
// processes are on one machine and read one clock.
type pacedChange struct {
	Object int
	At     int64
}

func (p *pacedReplay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != pacedPath {
		p.replay.ServeHTTP(w, request)
		return
	}
	changes, err1 := strconv.Atoi(request.URL.Query().Get("changes"))
	rate, err2 := strconv.Atoi(request.URL.Query().Get("rate"))
	if err := errors.Join(err1, err2); err != nil || rate < 1 {
		http.Error(w, fmt.Sprintf("want changes and a rate of at least 1: %v", err), http.StatusBadRequest)
		return
	}
	made := make([]pacedChange, 0, changes)
	err := pace(request.Context(), changes, rate, func(int) error {
		at := time.Now().UnixNano()
		made = append(made, pacedChange{Object: p.changed(p.publish(1)), At: at})
		return nil
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(made) // who asked sees that it is not whole
}

// pace calls f so many times, at a rate a second. One that is late does not make
// the next ones late.
func pace(ctx context.Context, times, rate int, f func(i int) error) error {
	began := time.Now()
	for i := range times {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate)))):
		}
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}
