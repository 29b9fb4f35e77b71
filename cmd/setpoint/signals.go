// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"syscall"
)

// untilSignal returns a context that ends with the first signal, after first has
// been called. The second one ends the process at once, after second has been.
func untilSignal(ctx context.Context, w *world, first, second func()) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, stop := w.signals()
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		first()
		cancel()
		select {
		case s := <-signals:
			second()
			w.exit(signalStatus(s))
		case <-done:
		}
	}()
	return ctx, func() { stop(); cancel(); close(done) }
}

// signalStatus is the exit status of a process that a signal ended, as shells have
// it.
func signalStatus(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}
