// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// A program is one that a command hands over to, see doc.go.
type program struct {
	command string // "watch"
	name    string // "setpoint-watch"
	install string // import path
	version string // of this program, and so of that one
}

const (
	watchProgram    = "setpoint-watch"
	generateProgram = "setpoint-generate"
)

func watchCommand(w *cli.World, version string) *cobra.Command {
	return handOver(w, version, "watch [KIND,KIND...]", "Print what changes in a cluster, and who changed it", program{
		command: "watch", name: watchProgram, install: "github.com/setpoint-io/setpoint/cmd/setpoint-watch",
	})
}

func generateCommand(w *cli.World, version string) *cobra.Command {
	return handOver(w, version, "generate [PACKAGE...]", "Write definitions, DeepCopy methods and rights from types and markers", program{
		command: "generate", name: generateProgram, install: "github.com/setpoint-io/setpoint/generate/cmd/setpoint-generate",
	})
}

// handOver returns a command that becomes another program. version is that of this program.
func handOver(w *cli.World, version, use, short string, p program) *cobra.Command {
	p.version = cli.WhatThisIs(version).Version
	become := func(args []string) error {
		path, err := p.find(w)
		if err != nil {
			return err
		}
		// Not a child: signals, the terminal and the exit status are then its own.
		if err := syscall.Exec(path, append([]string{p.name}, args...), w.Environ); err != nil {
			return fmt.Errorf("running %s: %w", path, err)
		}
		return nil
	}
	c := &cobra.Command{
		Use:                use,
		Short:              short,
		DisableFlagParsing: true, // the flags are those of the other program
		RunE:               func(_ *cobra.Command, args []string) error { return become(args) },
		ValidArgsFunction: func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return p.complete(c.Context(), w, append(args, toComplete))
		},
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { // of "setpoint help watch"
		if err := become([]string{"--help"}); err != nil {
			fmt.Fprintln(w.Stderr, "setpoint:", err)
		}
	})
	return c
}

// find returns the path of the program, which lies beside this one or in PATH.
func (p program) find(w *cli.World) (string, error) {
	path, err := w.FindProgram(p.name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("\"setpoint %s\" is the program %s, which is neither in %s nor in PATH: run %s",
			p.command, p.name, filepath.Dir(w.Executable), p.howToGet(w.Executable))
	}
	return path, err
}

// howToGet returns the command that puts the program where this one finds it: the checkout of
// this program builds it, or else the go command installs it, in the version of this program if
// that is a release.
func (p program) howToGet(executable string) string {
	if checkout := cli.Checkout(executable); checkout != "" {
		return fmt.Sprintf("\"make %s\" in %s", p.name, checkout)
	}
	version := "latest"
	if cli.Released(p.version) {
		version = p.version
	}
	return fmt.Sprintf("\"go install %s@%s\", and have the folder that it installs to, by default ~/go/bin, in PATH", p.install, version)
}

// complete asks the program how a command line can go on, in the way in which a shell asks
// this one.
func (p program) complete(ctx context.Context, w *cli.World, args []string) ([]string, cobra.ShellCompDirective) {
	path, err := p.find(w)
	if err != nil {
		return cobra.AppendActiveHelp(nil, err.Error()), cobra.ShellCompDirectiveNoFileComp
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append([]string{cobra.ShellCompRequestCmd}, args...)...)
	cmd.Env, cmd.Stdout = w.Environ, &out
	if err := cmd.Run(); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return parseCompletions(out.String())
}

// parseCompletions reads completions as a shell does: a line for each completion, and at
// last a colon and the directive.
func parseCompletions(text string) ([]string, cobra.ShellCompDirective) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	last := lines[len(lines)-1]
	directive, err := strconv.Atoi(strings.TrimPrefix(last, ":"))
	if err != nil || !strings.HasPrefix(last, ":") {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:len(lines)-1], cobra.ShellCompDirective(directive)
}
