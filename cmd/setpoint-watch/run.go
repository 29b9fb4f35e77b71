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
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/config"
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
	p, err := r.plan(c, args)
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
	p.host, p.log = m, log
	if err := m.Add(p); err != nil {
		return err
	}

	ctx, stop := r.w.UntilSignal(c.Context(), cli.Interruption{First: func() { log.Info("stopping") }, Second: func() {}})
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	p.end = end
	if err := p.prepare(ctx); err != nil {
		return err
	}
	// Who waits to lead leaves the file to who does.
	if len(election) == 0 {
		if err := p.open(); err != nil {
			return err
		}
	}
	defer p.close()
	if r.once {
		why := fmt.Sprintf("the server %s could not be reached", m.Client().Server())
		if len(election) > 0 {
			why += ", or somebody else held the lease"
		}
		tooLate := time.AfterFunc(onceWaits, func() {
			if !p.begun.Load() {
				end(fmt.Errorf("nothing was looked at: for %s %s", onceWaits, why))
			}
		})
		defer tooLate.Stop()
	}
	r.greet(p, m.Client().Server())
	return r.outcome(ctx, p, m.Run(ctx))
}

// outcome turns the end of the manager into that of the command.
func (r *runCommand) outcome(ctx context.Context, p *pipeline, err error) error {
	if p.err != nil {
		err = p.err // in its own words, without those of the manager around it
	}
	if _, asked := cli.SignalOf(ctx); err == nil && !asked && !errors.Is(context.Cause(ctx), errDone) && !errors.Is(context.Cause(ctx), context.Canceled) {
		err = context.Cause(ctx)
	}
	switch _, asked := cli.SignalOf(ctx); {
	case err != nil || !r.once:
		return err
	case p.changed():
		r.changed = true
		return cli.StatusError(somethingChanged)
	case asked && !p.done.Load():
		return errors.New("stopped before everything had been looked at")
	}
	return nil
}

// plan makes of flags and file what is to be done, and says what is wrong with them. Nothing
// is connected to yet.
func (r *runCommand) plan(c *cobra.Command, args []string) (*pipeline, error) {
	given := func(flag string) bool { return c.Flags().Changed(flag) }
	var err error
	if r.selection.kinds, err = kindsOf(args); err != nil {
		return nil, err
	}
	p := &pipeline{w: r.w, once: r.once, stdout: r.w.Stdout}
	if r.file != "" {
		if p.config, err = readConfig(r.file); err != nil {
			return nil, err
		}
		r.selection.take(p.config, given)
		if err := r.place(p.config, given); err != nil {
			return nil, err
		}
	}
	if p.options, err = r.selection.options(given); err != nil {
		return nil, err
	}
	if p.sinks, err = r.printing.sinks(r.w, p.config, given); err != nil {
		return nil, err
	}
	p.options.Once = r.once
	if p.cursor = r.cursor; given("cursor") && r.cursor == "" {
		return nil, errors.New("--cursor: want the name of a file")
	}
	switch {
	case r.once && p.cursor == "" && p.config == nil:
		return nil, errors.New("--once tells what has changed since the last run, and needs --cursor FILE, which knows of it")
	case r.once && p.cursor == "":
		return nil, fmt.Errorf("--once tells what has changed since the last run, and needs --cursor FILE, or a cursor in %s", r.file)
	}
	return p, checkFolder(p.cursor)
}

// place takes from the file where this process is: what it keeps, where it answers and which
// Lease it holds.
func (r *runCommand) place(c *config.Config, given func(flag string) bool) error {
	if !given("cursor") {
		r.cursor = c.Cursor
	}
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
func (r *runCommand) greet(p *pipeline, server string) {
	if !r.w.Terminal || r.once {
		return
	}
	what, in := "every kind", "all namespaces"
	if !p.options.All {
		what = "pods"
		if len(p.options.Kinds) > 0 {
			what = strings.Join(p.options.Kinds, ", ")
		}
	}
	if len(p.options.Namespaces) > 0 {
		in = strings.Join(p.options.Namespaces, ", ")
	}
	fmt.Fprintf(r.w.Stderr, "Watching %s in %s of %s. Ctrl-C ends it.\n", what, in, server)
}
