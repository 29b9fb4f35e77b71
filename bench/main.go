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
	"os/signal"
	"syscall"
)

// cases are the benchmarks by name.
var cases = map[string]struct {
	run  func(ctx context.Context, args []string, out io.Writer) error
	what string
}{
	"cache":       {runCache, "Setpoint's informers beside client-go's: memory, CPU, events, reads"},
	"readers":     {runReaders, "what readers that list in a loop cost the writer of a cache"},
	"informers":   {runInformers, "a thousand informers of small kinds beside client-go's: memory and goroutines of each"},
	"relist":      {runRelist, "memory while an informer lists everything again"},
	"queue":       {runQueue, "Setpoint's work queue beside client-go's and controller-runtime's"},
	"explain":     {runExplain, "the answers of setpoint explain in a cluster of 20,000 Pods, with the record full"},
	"page":        {runPage, "the page in a real Chromium, in a cluster of 20,000 Pods: first paint, and what open tabs cost the manager"},
	"loop":        {runLoop, "Setpoint's loop beside controller-runtime's: reconciles a second, latency, CPU"},
	"consistency": {runConsistency, "keys whose cache is stale: Setpoint's loop beside kube-controller-manager's way and controller-runtime's"},
	"chaos":       {runChaos, "informers against a server that misbehaves: what they miss"},
	"watch":       {runWatch, "setpoint watch beside the way of kubewatch: memory, CPU, lag, changes lost"},
	"soak":        {runSoak, "informers and managers for a long time under faults: what leaks, what differs from the server"},
	"envtest":     {runEnvtest, "start and stop of the binaries of setpoint assets beside stock ones, under envtest"},
	"operators":   {runOperators, "cluster-api's manager and trust-manager with NewCache and without: heap, memory, CPU"},
	"manager":     {runManager, "Setpoint's manager beside kube-controller-manager"},
}

// figuresCase runs the cases, so it is none of them.
const figuresCase = "figures"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == sideCase {
		go endWith(os.Stdin)
	}
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		if args[0] == sideCase {
			return runSide(ctx, args[1:], out)
		}
		if args[0] == figuresCase {
			return runFigures(ctx, args[1:], out)
		}
		if c, ok := cases[args[0]]; ok {
			return c.run(ctx, args[1:], out)
		}
	}
	fmt.Fprintln(out, "usage: go run . CASE [flags]; go run . CASE -h lists the flags. The cases are")
	for name, c := range cases {
		fmt.Fprintf(out, "  %-12s %s\n", name, c.what)
	}
	fmt.Fprintf(out, "  %-12s %s\n", figuresCase, "every case that docs/performance.md names, whose tables it writes anew")
	if len(args) == 0 {
		return errors.New("no case given")
	}
	return fmt.Errorf("there is no case %q", args[0])
}
