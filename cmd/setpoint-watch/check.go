// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/watch/config"
	"github.com/setpoint-io/setpoint/watch/sink"
)

func checkCommand(w *cli.World) *cobra.Command {
	var (
		file   string
		send   bool
		target cli.Target
		l      cli.Logging
	)
	c := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Say what is wrong with a configuration",
		Long: `Say what is wrong with a configuration, each mistake with its line, or what it means
if it is right. Secrets that it refers to are read. Nothing is connected to, unless
--send asks for a test message to each sink. The status is 1 if something is wrong.`,
		Example: `  setpoint watch check -f watch.yaml

  # and does it arrive?
  setpoint watch check -f watch.yaml --send`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return errors.New("check: want the configuration, -f FILE")
			}
			if _, err := l.Logger(w, slog.LevelWarn); err != nil {
				return err
			}
			ctx, stop := w.UntilSignal(c.Context(), cli.Interruption{First: func() {}, Second: func() {}})
			defer stop()
			return check(ctx, w, file, send, &target)
		},
	}
	c.Flags().StringVarP(&file, "config", "f", "", "the YAML `file`")
	c.Flags().BoolVar(&send, "send", false, "send a test message to each sink")
	target.Flags(c.Flags())
	l.Flags(c.Flags(), c)
	cli.ExplainFlagErrors(c, nil)
	return c
}

// check prints mistakes on standard error, in the form that editors understand, and what the
// configuration means on standard output. It returns an error if there is a mistake.
func check(ctx context.Context, w *cli.World, file string, send bool, target *cli.Target) error {
	conf, err := readConfig(file)
	if _, found := errors.AsType[*config.Finding](err); found {
		fmt.Fprintln(w.Stderr, err)
		return cli.StatusError(1)
	}
	if err != nil {
		return err
	}
	report := config.Check(conf, readSecret, lookupEnv(w))
	mistakes := report.Errors
	for _, mistake := range mistakes {
		fmt.Fprintln(w.Stderr, mistake)
	}
	report.Errors = nil
	for _, line := range report.Lines() {
		if _, err := fmt.Fprintln(w.Stdout, line); err != nil {
			return err
		}
	}
	if send && len(mistakes) == 0 {
		for _, s := range conf.Sinks {
			if err := try(ctx, w, s, target); err != nil {
				fmt.Fprintf(w.Stderr, "%s: %v\n", file, err)
				mistakes = append(mistakes, err)
			} else {
				fmt.Fprintf(w.Stdout, "sink %s took the test message\n", s.Name)
			}
		}
	}
	if len(mistakes) > 0 {
		return cli.StatusError(1)
	}
	return nil
}

// try sends a test message to a sink.
func try(ctx context.Context, w *cli.World, s config.Sink, target *cli.Target) error {
	deps := sink.Deps{Secret: secrets(w), Stdout: w.Stdout, Width: w.StdoutWidth, Zone: time.Local}
	if s.KubernetesEvents != nil {
		cluster, err := target.Config()
		if err == nil {
			deps.Client, err = client.New(cluster)
		}
		if err != nil {
			return fmt.Errorf("sink %s: %w", s.Name, err)
		}
	}
	return sink.Try(ctx, s.Name, s.Options, deps)
}
