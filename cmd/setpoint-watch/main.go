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

// garbage is the default of GOGC, in percent of the memory in use. Most of that are encoded
// objects without pointers, so a collection is cheap.
const garbage = 40

func main() {
	// With SIGPIPE ignored, a reader of standard output that went away is an error of a write.
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

// run runs the command line and returns the exit status: 0, or 1 after an error, which is on
// standard error. With --once 1 means that something has changed, and 2 is an error.
func run(ctx context.Context, w *cli.World, args []string) int {
	r := &runCommand{w: w}
	status := w.Run(ctx, rootCommand(r), name, args)
	// Flags that are wrong leave r.once unset.
	if status == 1 && !r.changed && (r.once || slices.Contains(args, "--once")) {
		return onceFailed
	}
	return status
}
