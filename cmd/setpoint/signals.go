// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// signaledError is why a context ended that untilSignal made.
type signaledError struct{ signal os.Signal }

func (e signaledError) Error() string { return "stopped by signal: " + e.signal.String() }

// An interruption is what a command does about signals, beside what it always does.
type interruption struct {
	// pass reports whether a signal is meant for somebody else. It may be nil.
	pass func(os.Signal) bool
	// first is called with the first signal, before the context ends.
	first func()
	// second is called before the second signal ends the process.
	second func()
}

// untilSignal returns a context that ends with the first signal, which is its
// cause. The second one ends the process at once.
func untilSignal(ctx context.Context, w *world, i interruption) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, stop := w.signals()
	done := make(chan struct{})
	go func() {
		asked := false
		for {
			select {
			case s := <-signals:
				switch {
				case i.pass != nil && i.pass(s):
				case !asked:
					asked = true
					i.first()
					cancel(signaledError{s})
				default:
					i.second()
					w.exit(signalStatus(s))
					return
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { stop(); cancel(nil); close(done) }
}

// signalOf returns the signal that ended a context of untilSignal.
func signalOf(ctx context.Context) (os.Signal, bool) {
	e, ok := errors.AsType[signaledError](context.Cause(ctx))
	return e.signal, ok
}

// signalStatus is the exit status of a process that a signal ended, as shells have
// it.
func signalStatus(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}
