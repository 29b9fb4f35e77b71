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
	"syscall"
)

// stopError is the cause of a context that ended by a signal or by the parent. Its text
// is the reason that is reported.
type stopError string

func (s stopError) Error() string { return string(s) }

func isStopRequest(err error) bool {
	var s stopError
	return errors.As(err, &s)
}

// onStopRequest returns a context that ends with the first request to stop. A
// second signal ends the process at once.
func onStopRequest(ctx context.Context, lifeline io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)

	// The end of a parent must not become the end of us while we write to it.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	if lifeline == nil {
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	} else {
		signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			// An error, like the end, means that no process holds the other side.
			_, _ = io.Copy(io.Discard, lifeline)
			cancel(stopError("end of standard input"))
		}()
	}
	go func() {
		first := <-signals
		cancel(stopError(first.String()))
		second := <-signals
		fmt.Fprintln(os.Stderr, "setpoint-controlplane: stopped at once, without cleaning up")
		status := 130 // 128 + SIGINT, as shells report it
		if second == syscall.SIGTERM {
			status = 143
		}
		os.Exit(status)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
