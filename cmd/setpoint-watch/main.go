// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/setpoint-io/setpoint/internal/cli"
)

// version is stamped by the linker.
var version = ""

// name is what users call the program.
const name = "setpoint watch"

// garbage is how much of it there may be, in percent of what is in use, unless GOGC says so.
// Most of what is in use are encoded objects, which a collection does not look into, so that
// it is cheap to have little garbage.
const garbage = 40

func main() {
	// A reader that went away is an error of a write then, and not a sudden end.
	signal.Ignore(syscall.SIGPIPE)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	os.Exit(run(context.Background(), cli.ThisProcess(), os.Args[1:]))
}

// The exit statuses of --once, as those of "kubectl diff".
const (
	nothingChanged   = 0
	somethingChanged = 1
	onceFailed       = 2
)

// run runs the command line and returns the status to exit with: 0 is well and 1 is an
// error that was said on standard error. With --once 1 means that something has changed,
// and 2 is an error.
func run(ctx context.Context, w *cli.World, args []string) int {
	r := &runCommand{w: w}
	status := w.Run(ctx, rootCommand(r), name, args)
	// Flags that are wrong leave r.once unset.
	if status == 1 && !r.changed && (r.once || slices.Contains(args, "--once")) {
		return onceFailed
	}
	return status
}
