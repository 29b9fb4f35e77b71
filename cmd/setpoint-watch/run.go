// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/heap"
	"github.com/setpoint-io/setpoint/internal/processors"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// runCommand is the command line of "setpoint watch".
type runCommand struct {
	w *cli.World

	selection selection
	printing  printing
	cursor    string
	states    bool // in the cursor
	once      bool
	causes    bool // the cause of each change, by the record of a manager
	within    time.Duration
	file      string
	target    cli.Target
	answering cli.Answering
	electing  cli.Electing
	logging   cli.Logging

	changed bool // with once: something has changed
}

func (r *runCommand) run(c *cobra.Command, args []string) error {
	o, err := r.plan(c, args)
	if err != nil {
		return err
	}
	election, err := r.electing.Options()
	if err != nil {
		return err
	}
	log, err := r.logging.Logger(r.w, slog.LevelWarn)
	if err != nil {
		return err
	}
	cluster, err := r.target.Config()
	if err != nil {
		return err
	}
	serving, err := r.answering.Options(c.Context(), log)
	if err != nil {
		return err
	}
	m, err := manager.New(cluster, append(append(election, serving...), manager.Log(log), manager.ClientOptions(client.QuietConnections()))...)
	if err != nil {
		return err
	}
	ctx, stop := r.w.UntilSignal(c.Context(), cli.Interruption{First: func() { log.Info("stopping") }, Second: func() {}})
	defer stop()
	defer heap.Tune(ctx)()
	defer processors.Tune(ctx, m.Elected())()
	if r.causes && !r.once { // what changed while no watch ran has no cause
		o.Because = causes(ctx, m.Client(), cluster, r.within)
	}
	return r.watch(ctx, m, o, len(election) > 0)
}

// watch runs the watch on a manager until the context ends, or with --once until everything has
// been told.
func (r *runCommand) watch(ctx context.Context, m *manager.Manager, o watch.PipelineOptions, elected bool) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	out := newReader(ctx, r.w.Stdout)
	if len(o.Sinks) == 1 { // other sinks go on without standard output
		out.gone = func() { end(errDone) }
		go out.awaitGone()
	}
	o.Deps = sink.Deps{Secret: secrets(r.w), Stdout: out, Width: r.w.StdoutWidth, Zone: time.Local}
	p, err := watch.NewPipeline(m, o)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	job := &job{Pipeline: p, once: r.once, end: end}
	if err := m.Add(job); err != nil {
		return err
	}
	if !elected { // otherwise the leader has the file open
		if err := p.Open(); err != nil {
			return err
		}
	}
	server := m.Client().Server()
	if r.once {
		defer job.limit(server, elected).Stop()
	}
	r.greet(o.Options, server)
	return r.outcome(ctx, job, m.Run(ctx))
}

// greet says on a terminal that the watch has begun: the first event may take long.
func (r *runCommand) greet(o watch.Options, server string) {
	if !r.w.Terminal || r.once {
		return
	}
	what, in := "every kind", "all namespaces"
	if !o.All {
		what = "pods"
		if len(o.Kinds) > 0 {
			what = strings.Join(o.Kinds, ", ")
		}
	}
	if len(o.Namespaces) > 0 {
		in = strings.Join(o.Namespaces, ", ")
	}
	fmt.Fprintf(r.w.Stderr, "Watching %s in %s of %s. Ctrl-C ends it.\n", what, in, server)
}
