// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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

// World is what a command knows of the process that it runs in. Tests make their own.
type World struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stderr is one
	StdoutTerminal bool // Stdout is one
	StdoutWidth    int  // its columns; 0: not known
	Interactive    bool // a terminal sends Ctrl-C to this process and its children alike
	Getenv         func(string) string
	Environ        []string
	Executable     string                                   // path of this program
	Signals        func() (s <-chan os.Signal, stop func()) // of the wish to end
	Exit           func(code int)                           // at once

	atEnd []func() // what Run calls when the command has ended
}

// ThisProcess is the world of this process.
func ThisProcess() *World {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	return &World{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: isTerminal(os.Stderr), StdoutTerminal: isTerminal(os.Stdout), StdoutWidth: widthOf(os.Stdout),
		Interactive: slices.ContainsFunc([]*os.File{os.Stdin, os.Stdout, os.Stderr}, isTerminal),
		Getenv:      os.Getenv,
		Environ:     os.Environ(),
		Executable:  executable,
		Signals: func() (<-chan os.Signal, func()) {
			c := make(chan os.Signal, 2)
			signal.Notify(c, os.Interrupt, syscall.SIGTERM)
			if !signal.Ignored(syscall.SIGHUP) { // as under nohup
				signal.Notify(c, syscall.SIGHUP)
			}
			return c, func() { signal.Stop(c) }
		},
		Exit: os.Exit,
	}
}

func widthOf(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// StatusError ends the process with a status of its own and no message.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Run runs a command line and returns the status to exit with: 0 is well, that of a
// [StatusError] is the command's own, and 1 is an error, which was said on standard error
// behind the name that the command is known by.
func (w *World) Run(ctx context.Context, root *cobra.Command, name string, args []string) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.AddCommand(describeCommand(root, w.Stdout))
	root.SetArgs(args)
	root.SetIn(w.Stdin)
	root.SetOut(w.Stdout)
	root.SetErr(w.Stderr)
	err := root.ExecuteContext(ctx)
	for _, end := range w.atEnd {
		end()
	}
	var status StatusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return int(status)
	}
	fmt.Fprintf(w.Stderr, "%s: %v\n", name, err)
	return 1
}
