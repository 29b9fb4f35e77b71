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
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// testTime is how long a test message may take.
const testTime = 30 * time.Second

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
			log, err := l.Logger(w, slog.LevelWarn)
			if err != nil {
				return err
			}
			ctx, stop := w.UntilSignal(c.Context(), cli.Interruption{First: func() {}, Second: func() {}})
			defer stop()
			return check(ctx, w, file, send, &target, log)
		},
	}
	c.Flags().StringVarP(&file, "config", "f", "", "the YAML `file`")
	c.Flags().BoolVar(&send, "send", false, "send a test message to each sink")
	target.Flags(c.Flags())
	l.Flags(c.Flags(), c)
	cli.ExplainFlagErrors(c, nil)
	return c
}

// check prints what there is to say, and is an error if there is a mistake: what is wrong on
// standard error, in the form that editors understand, and what it means on standard output.
func check(ctx context.Context, w *cli.World, file string, send bool, target *cli.Target, log *slog.Logger) error {
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
	for i, text := range conf.Hide {
		if _, err := observe.ParseRule(text); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: hide[%d]: %q: %w", file, i, text, err))
		}
	}
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
			if err := try(ctx, w, s, target, log); err != nil {
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

// try sends a test message by a sink.
func try(ctx context.Context, w *cli.World, s config.Sink, target *cli.Target, log *slog.Logger) error {
	deps := sink.Deps{Secret: secrets(w), Stdout: w.Stdout, Width: w.StdoutWidth, Zone: time.Local}
	if s.KubernetesEvents != nil {
		cluster, err := target.Config()
		if err != nil {
			return fmt.Errorf("sink %s: %w", s.Name, err)
		}
		if deps.Client, err = client.New(cluster); err != nil {
			return fmt.Errorf("sink %s: %w", s.Name, err)
		}
	}
	made, err := sink.New(ctx, s.Name, s.Options, deps)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	if err := errors.Join(sink.Test(ctx, made), made.Close()); err != nil {
		return fmt.Errorf("sink %s: %w", s.Name, err)
	}
	return nil
}
