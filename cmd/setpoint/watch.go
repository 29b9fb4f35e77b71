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

// watchProgram is what "setpoint watch" hands over to, see doc.go.
const watchProgram = "setpoint-watch"

func watchCommand(w *cli.World) *cobra.Command {
	handOver := func(args []string) error {
		path, err := findWatch(w)
		if err != nil {
			return err
		}
		// Not a child: signals, the terminal and the exit status are then its own.
		if err := syscall.Exec(path, append([]string{watchProgram}, args...), w.Environ); err != nil {
			return fmt.Errorf("running %s: %w", path, err)
		}
		return nil
	}
	c := &cobra.Command{
		Use:                "watch [KIND,KIND...]",
		Short:              "Print what changes in a cluster, and who changed it",
		DisableFlagParsing: true, // the flags are those of the other program
		RunE:               func(_ *cobra.Command, args []string) error { return handOver(args) },
		ValidArgsFunction: func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return completeWatch(c.Context(), w, append(args, toComplete))
		},
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { // of "setpoint help watch"
		if err := handOver([]string{"--help"}); err != nil {
			fmt.Fprintln(w.Stderr, "setpoint:", err)
		}
	})
	return c
}

// findWatch returns the path of the program, which lies beside this one or in PATH.
func findWatch(w *cli.World) (string, error) {
	path, err := w.FindProgram(watchProgram)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("\"setpoint watch\" is the program %s, which is neither in %s nor in PATH: "+
			"\"go install github.com/setpoint-io/setpoint/cmd/%s@latest\" installs it, and \"make build\" in a checkout of Setpoint builds it beside this one",
			watchProgram, filepath.Dir(w.Executable), watchProgram)
	}
	return path, err
}

// completeWatch gets the completions of a command line from the program, as a shell gets
// them from this one.
func completeWatch(ctx context.Context, w *cli.World, args []string) ([]string, cobra.ShellCompDirective) {
	path, err := findWatch(w)
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
