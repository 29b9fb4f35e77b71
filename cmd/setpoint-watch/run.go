// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// onceWaits is how long --once waits for a server that cannot be reached, and for sinks that
// take nothing.
const onceWaits = 30 * time.Second

// runCommand is the command line of "setpoint watch".
type runCommand struct {
	w *cli.World

	selection selection
	printing  printing
	cursor    string
	once      bool
	file      string
	target    cli.Target
	answering cli.Answering
	electing  cli.Electing
	logging   cli.Logging

	changed bool // with once: something had
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
	m, err := manager.New(cluster, append(append(election, serving...), manager.Log(log))...)
	if err != nil {
		return err
	}
	server := m.Client().Server()

	ctx, stop := r.w.UntilSignal(c.Context(), cli.Interruption{First: func() { log.Info("stopping") }, Second: func() {}})
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	out := &reader{out: r.w.Stdout, ctx: ctx, gone: func() {}}
	if len(o.Sinks) == 1 { // otherwise there is still somebody to tell
		out.gone = func() { end(errDone) }
		go out.awaitGone()
	}
	o.Deps = sink.Deps{Secret: secrets(r.w), Stdout: out, Width: r.w.StdoutWidth, Zone: time.Local}
	p, err := watch.NewPipeline(ctx, m, o)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close() }()
	job := &job{Pipeline: p, once: r.once, end: end}
	if err := m.Add(job); err != nil {
		return err
	}
	// Who waits to lead leaves the file to who does.
	if len(election) == 0 {
		if err := p.Open(); err != nil {
			return err
		}
	}
	if r.once {
		why := fmt.Sprintf("the server %s could not be reached", server)
		if len(election) > 0 {
			why += ", or somebody else held the lease"
		}
		tooLate := time.AfterFunc(onceWaits, func() {
			if !job.begun.Load() {
				end(fmt.Errorf("nothing was looked at: for %s %s", onceWaits, why))
			}
		})
		defer tooLate.Stop()
	}
	r.greet(o.Options, server)
	return r.outcome(ctx, job, m.Run(ctx))
}

// errDone is why the manager ended when everything has been done.
var errDone = errors.New("everything has been told")

// job is the pipeline as the manager runs it. It ends the manager when all is told.
type job struct {
	*watch.Pipeline

	once        bool
	end         context.CancelCauseFunc
	begun, done atomic.Bool
	err         error // of Run
}

// Run implements manager.Runnable.
func (j *job) Run(ctx context.Context) error {
	j.begun.Store(true)
	j.err = j.Pipeline.Run(ctx)
	if errors.Is(j.err, syscall.EPIPE) || errors.Is(j.err, errUnread) {
		j.err = nil // nobody reads any more
	}
	if j.err == nil && j.once && ctx.Err() == nil {
		j.done.Store(true)
		j.end(errDone)
	}
	return j.err
}

// outcome turns the end of the manager into that of the command.
func (r *runCommand) outcome(ctx context.Context, j *job, err error) error {
	if j.err != nil {
		err = j.err // in its own words, without those of the manager around it
	}
	_, asked := cli.SignalOf(ctx)
	if cause := context.Cause(ctx); err == nil && !asked && !errors.Is(cause, errDone) && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	switch {
	case err != nil || !r.once:
		return err
	case j.Changed():
		r.changed = true
		return cli.StatusError(somethingChanged)
	case asked && !j.done.Load():
		return errors.New("stopped before everything had been looked at")
	}
	return nil
}

// plan makes of flags and file what is to be done, and says what is wrong with them. Nothing
// is connected to yet.
func (r *runCommand) plan(c *cobra.Command, args []string) (o watch.PipelineOptions, err error) {
	given := func(flag string) bool { return c.Flags().Changed(flag) }
	if r.selection.kinds, err = kindsOf(args); err != nil {
		return o, err
	}
	var file *config.Config
	if r.file != "" {
		if file, err = readConfig(r.file); err != nil {
			return o, err
		}
		o = watch.Configured(file)
		if err := r.place(file, given); err != nil {
			return o, err
		}
	}
	if err := r.selection.over(&o.Options, given); err != nil {
		return o, err
	}
	if o.Sinks, err = r.printing.sinks(r.w, file, given); err != nil {
		return o, err
	}
	if file != nil && len(file.Sinks) == 0 {
		o.Router = nil // it leads nowhere, and what prints is told everything
	}
	o.Once = r.once
	if given("cursor") {
		if o.Cursor = r.cursor; r.cursor == "" {
			return o, errors.New("--cursor: want the name of a file")
		}
	}
	switch {
	case r.once && o.Cursor == "" && file == nil:
		return o, errors.New("--once tells what has changed since the last run, and needs --cursor FILE, which knows of it")
	case r.once && o.Cursor == "":
		return o, fmt.Errorf("--once tells what has changed since the last run, and needs --cursor FILE, or a cursor in %s", r.file)
	}
	return o, checkFolder(o.Cursor)
}

// place takes from the file where this process answers, and which Lease it holds.
func (r *runCommand) place(c *config.Config, given func(flag string) bool) error {
	if c.Listen != "" && !given("secure-port") && !given("bind-address") {
		if err := r.answering.At(c.Listen); err != nil {
			return fmt.Errorf("%s: listen: %w", c.File(), err)
		}
	}
	if c.Lease == "" {
		return nil
	}
	if !given("leader-elect") {
		r.electing.On()
	}
	if !given("leader-elect-resource-name") && !given("leader-elect-resource-namespace") {
		namespace, name, _ := strings.Cut(c.Lease, "/")
		r.electing.By(object.Key{Namespace: namespace, Name: name})
	}
	return nil
}

// checkFolder says that there is no folder for a file, before there is anything to lose.
func checkFolder(file string) error {
	if file == "" {
		return nil
	}
	info, err := os.Stat(filepath.Dir(file))
	switch {
	case err != nil:
		return fmt.Errorf("--cursor=%s: its folder cannot be used: %w", file, err)
	case !info.IsDir():
		return fmt.Errorf("--cursor=%s: %s is no folder", file, filepath.Dir(file))
	}
	return nil
}

// greet says on a terminal that it works, since nothing may be seen for long.
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
