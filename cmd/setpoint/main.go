// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// version is stamped by the linker.
var version = ""

// world is what a command knows of the process that it runs in. Tests make their
// own.
type world struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool // stderr is one
	interactive    bool // a terminal sends Ctrl-C to this process and its children alike
	getenv         func(string) string
	environ        []string
	executable     string                                   // path of this program
	signals        func() (s <-chan os.Signal, stop func()) // of the wish to end
	exit           func(code int)                           // at once
}

// statusError ends the process with a status of its own and no message.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	w := &world{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		terminal:    term.IsTerminal(int(os.Stderr.Fd())),
		interactive: slices.ContainsFunc([]*os.File{os.Stdin, os.Stdout, os.Stderr}, func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }),
		getenv:      os.Getenv,
		environ:     os.Environ(),
		executable:  executable,
		signals: func() (<-chan os.Signal, func()) {
			c := make(chan os.Signal, 2)
			signal.Notify(c, os.Interrupt, syscall.SIGTERM)
			if !signal.Ignored(syscall.SIGHUP) { // as under nohup
				signal.Notify(c, syscall.SIGHUP)
			}
			return c, func() { signal.Stop(c) }
		},
		exit: os.Exit,
	}
	os.Exit(run(context.Background(), w, os.Args[1:]))
}

// run runs the command line and returns the status to exit with: 0 is well, 1 is
// an error that was said on standard error, 128 and a signal's number is the wish
// to end before what was asked for was done, anything else is the status of the
// command that "setpoint up" ran.
func run(ctx context.Context, w *world, args []string) int {
	root := &cobra.Command{
		Use:   "setpoint",
		Short: "Kubernetes controllers, and a cluster to run them in",
		Long: `Setpoint runs Kubernetes controllers: in a cluster of its own that one command
starts on this machine, or against any cluster that you have a kubeconfig of.`,
		Example: `  # a cluster on this machine, until Ctrl-C
  setpoint up

  # the controllers alone, against the cluster of your current kubeconfig
  setpoint manager`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(args)
	root.SetIn(w.stdin)
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	root.AddCommand(upCommand(w), managerCommand(w), versionCommand(w))

	err := root.ExecuteContext(ctx)
	var status statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintln(w.stderr, "setpoint:", err)
	return 1
}
