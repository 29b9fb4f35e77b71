// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/pause"
)

const (
	// patience is how long Eventually waits.
	patience = 2 * time.Minute

	retryPause = 50 * time.Millisecond
)

// Eventually is the program "eventually COMMAND ARGS…": it runs a command again and again
// until it succeeds, and fails after two minutes. A command in one argument with spaces is one
// for the shell.
func Eventually() { os.Exit(eventually(os.Args[1:], patience, os.Stderr)) }

func eventually(args []string, limit time.Duration, stderr io.Writer) (status int) {
	if len(args) == 0 {
		fmt.Fprintln(stderr, "usage: eventually COMMAND ARGS…")
		return 2
	}
	command := args
	if len(args) == 1 && strings.Contains(args[0], " ") {
		command = []string{"sh", "-c", args[0]}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	said := "" // by the last attempt that ended by itself, or by the first
	var failed error
	for {
		began := time.Now()
		out, err := attempt(ctx, command)
		if err == nil {
			return 0
		}
		if failed == nil || ctx.Err() == nil {
			said, failed = out, err
		}
		if !pause.For(ctx, pause.Between(time.Since(began), retryPause)) {
			fmt.Fprintf(stderr, "eventually: not so within %s: %s: %v\n%s", limit, strings.Join(args, " "), failed, said)
			return 1
		}
	}
}

// attempt runs a command once, and returns what it printed.
func attempt(ctx context.Context, command []string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // it is the script's
	c.WaitDelay = time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), err
}
