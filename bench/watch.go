// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/child"
)

// watchBench is the command line of "watch".
type watchBench struct {
	bin      string
	pods     int
	rate     int
	seconds  int
	turns    int
	clients  int
	seed     uint64
	together bool // only the round with both
	replay   bool // changes of a server in this process
	profiles string
	verbose  bool

	kubewatchBinary string
	results         map[string][]readings // by round and side
}

// kubewatchSide is peers/clientgo/kubewatch.
const kubewatchSide = "kubewatch"

// watchRound is a number of changes, and the watches that report them.
type watchRound struct {
	name  string
	sides []string
}

const (
	bothRound   = "watch"  // both watch the same changes at the same time
	aloneRound  = "alone"  // one after the other
	cursorRound = "cursor" // Setpoint alone, with a cursor on the disk
)

func runWatch(ctx context.Context, args []string, out io.Writer) (err error) {
	b := watchBench{results: map[string][]readings{}}
	flags := flag.NewFlagSet("watch", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&b.bin, "bin", filepath.Join("..", "bin"), "directory of the binaries")
	flags.IntVar(&b.pods, "pods", 100_000, "Pods in the cluster")
	flags.IntVar(&b.rate, "rate", 500, "writes a second")
	flags.IntVar(&b.seconds, "seconds", 60, "how long Pods change in each round")
	flags.IntVar(&b.turns, "turns", 1, "turns, each on a fresh control plane")
	flags.IntVar(&b.clients, "clients", 32, "clients that write")
	flags.Uint64Var(&b.seed, "seed", corpusSeed, "chooses which Pods change, and how")
	flags.BoolVar(&b.together, "together", false, "leave out the rounds in which each is alone, and that with a cursor")
	flags.BoolVar(&b.replay, "replay", false, "take Pods and changes from a server in this process, instead of a control plane; without the round with both")
	folderFlag(flags, "profiles", &b.profiles, "`folder` for profiles of Setpoint's CPU where it is alone, of its heap, and of the control plane's CPU (costs CPU)")
	flags.BoolVar(&b.verbose, "v", false, "print the figures of every turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.pods < 1 || b.rate < 1 || b.seconds < 1 || b.turns < 1 || b.clients < 1 {
		return fmt.Errorf("measuring watch: --pods %d, --rate %d, --seconds %d, --turns %d, --clients %d: all must be at least 1",
			b.pods, b.rate, b.seconds, b.turns, b.clients)
	}
	dir, err := os.MkdirTemp("", "setpoint-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := b.buildKubewatch(ctx, dir); err != nil {
		return err
	}
	printMachine(out)
	fmt.Fprintf(out, "# %d Pods, %d writes/s for %d s in each round, of which %d %% create and %d %% delete; seed %d, %d turn(s), medians\n",
		b.pods, b.rate, b.seconds, createdOfHundred, deletedOfHundred, b.seed, b.turns)
	fmt.Fprintln(out, "# a deletion is two changes: a Pod is marked as to be deleted, and then gone")
	fmt.Fprintln(out, "# lag: from just before the request of a change is sent until its line is read; behind-answer: from when that")
	fmt.Fprintln(out, "# request is answered, which leaves out what the server takes for the change itself")
	play := b.turn
	if b.replay {
		play = b.runReplay
	}
	for turn := range b.turns {
		if err := play(ctx, out, turn); err != nil {
			return fmt.Errorf("measuring watch, turn %d: %w", turn+1, err)
		}
	}
	b.print(out)
	fmt.Fprintf(out, "# load average %s\n", loadAverage())
	return nil
}

// buildKubewatch builds the peer, a program of its own so that its memory is that of
// nothing else.
func (b *watchBench) buildKubewatch(ctx context.Context, dir string) error {
	b.kubewatchBinary = filepath.Join(dir, "kubewatch")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.kubewatchBinary, "./peers/clientgo/kubewatch")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the peer, in the directory bench: %w: %s", err, text)
	}
	return nil
}

// rounds are those of a turn. Neither side is always first.
func (b *watchBench) rounds(turn int) []watchRound {
	sides := []string{setpointSide, kubewatchSide}
	if turn%2 == 1 {
		slices.Reverse(sides)
	}
	all := []watchRound{{bothRound, sides}}
	if !b.together {
		all = append(all, watchRound{aloneRound, sides[:1]}, watchRound{aloneRound, sides[1:]}, watchRound{cursorRound, []string{setpointSide}})
	}
	return all
}

func (b *watchBench) changes() int { return b.rate * b.seconds }

// turn measures all rounds on a fresh control plane.
func (b *watchBench) turn(ctx context.Context, out io.Writer, turn int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*turnLimit)
	defer cancel()
	c, err := startClusterWith(ctx, b.bin, child.Options{NoScheduler: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	s, err := newScene(c, b.pods, b.clients)
	if err != nil {
		return err
	}
	rounds := b.rounds(turn)
	began := time.Now()
	flock, size, err := s.fill(ctx, len(rounds)*b.changes())
	if err != nil {
		return fmt.Errorf("creating Pods: %w", err)
	}
	ready, err := s.makeReadyPod(ctx)
	if err != nil {
		return err
	}
	server, err := megabytes(c.process.Pid(), "VmRSS:")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "# turn %d: %d Pods of %.0f bytes of protobuf, created in %.0f s; the control plane has %.0f MB; load average %s\n",
		turn+1, b.pods, size, time.Since(began).Seconds(), server, loadAverage())
	for i, r := range rounds {
		p := &watchPlay{watchBench: b, scene: s, round: r, ready: ready, out: out, turn: turn}
		l := &changer{
			plain: s.plain, flock: flock, ledger: newLedger(r.sides...), clients: b.clients, changes: b.changes(), rate: b.rate,
			dice: rand.New(rand.NewPCG(b.seed, uint64(turn*len(rounds)+i))),
		}
		if err := p.play(ctx, l); err != nil {
			return fmt.Errorf("round %q of %s: %w", r.name, strings.Join(r.sides, " and "), err)
		}
	}
	return nil
}

// makeReadyPod creates a Pod that is changed until a side reports it, and by no other
// writer.
func (s *scene) makeReadyPod(ctx context.Context) (*corev1.Pod, error) {
	const name = "ready"
	if err := s.makeNamespace(ctx, name); err != nil {
		return nil, err
	}
	p := planned(pod(0))
	p.Namespace, p.Name = name, name
	_, err := s.plain.CoreV1().Pods(name).Create(ctx, p, metav1.CreateOptions{})
	return p, err
}

// print prints the measures.
func (b *watchBench) print(out io.Writer) {
	for _, l := range watchLines(b.together) {
		if b.replay && l.round == bothRound {
			continue
		}
		column := func(round, side string) (column []float64) {
			for _, r := range b.results[round+" "+side] {
				column = append(column, r[l.reading])
			}
			return column
		}
		peers := l.round
		if peers == cursorRound {
			peers = aloneRound // kubewatch has no cursor
		}
		m := measure{name: l.round + "-" + l.name, unit: l.unit, aim: l.aim,
			ours: column(l.round, setpointSide), theirs: column(peers, kubewatchSide)}
		m.print(out, b.verbose)
	}
}

// watchLine is one measure.
type watchLine struct {
	round, name, unit, reading string
	aim                        aim
}

func watchLines(together bool) []watchLine {
	rounds := []string{bothRound, aloneRound, cursorRound}
	if together {
		rounds = rounds[:1]
	}
	tenth := aim{most: 0.1}
	var lines []watchLine
	for _, round := range rounds {
		lines = append(lines,
			watchLine{round, "memory-after-sync", "MB", "synced", tenth},
			watchLine{round, "memory-after-changes", "MB", "after", tenth},
			watchLine{round, "memory-peak", "MB", "peak", aim{}},
			watchLine{round, "heap", "MB", "heap", tenth},
			watchLine{round, "cpu-to-sync", "s", "sync", aim{}},
			watchLine{round, "seconds-to-sync", "s", "wall", aim{}},
			watchLine{round, "cpu-per-1000-changes", "s", "cpu", aim{}},
			watchLine{round, "lag-p50", "ms", "p50", aim{}},
			watchLine{round, "lag-p99", "ms", "p99", aim{value: 200}},
			watchLine{round, "behind-answer-p50", "ms", "behind50", aim{}},
			watchLine{round, "behind-answer-p99", "ms", "behind99", aim{}},
			watchLine{round, "changes-lost", "", "lost", aim{none: true}},
		)
	}
	return lines
}
