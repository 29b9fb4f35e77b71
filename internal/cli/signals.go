// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// signaledError is why a context ended that UntilSignal made.
type signaledError struct{ signal os.Signal }

func (e signaledError) Error() string { return "stopped by signal: " + e.signal.String() }

// An Interruption is what a command does about signals, beside what it always does.
type Interruption struct {
	// Pass reports whether a signal is for another part of the program. It may be nil.
	Pass func(os.Signal) bool
	// First is called with the first signal, before the context ends.
	First func()
	// Second is called before the second signal ends the process.
	Second func()
}

// UntilSignal returns a context that ends with the first signal, which is its
// cause. The second one ends the process at once.
func (w *World) UntilSignal(ctx context.Context, i Interruption) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals, stop := w.Signals()
	done := make(chan struct{})
	go func() {
		asked := false
		for {
			select {
			case s := <-signals:
				switch {
				case i.Pass != nil && i.Pass(s):
				case !asked:
					asked = true
					i.First()
					cancel(signaledError{s})
				default:
					i.Second()
					w.Exit(SignalStatus(s))
					return
				}
			case <-done:
				return
			}
		}
	}()
	return ctx, func() { stop(); cancel(nil); close(done) }
}

// SignalOf returns the signal that ended a context of [World.UntilSignal].
func SignalOf(ctx context.Context) (os.Signal, bool) {
	e, ok := errors.AsType[signaledError](context.Cause(ctx))
	return e.signal, ok
}

// SignalStatus is the exit status of a process that a signal ended, as shells have
// it.
func SignalStatus(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}
