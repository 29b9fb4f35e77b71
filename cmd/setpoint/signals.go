// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"syscall"
)

// untilSignal returns a context that ends with the first signal. The second one
// ends the process at once, after atOnce has been called, if it is given.
func untilSignal(ctx context.Context, w *world, atOnce ...func()) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, stop := w.signals()
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-done:
			return
		}
		cancel()
		select {
		case s := <-signals:
			for _, f := range atOnce {
				f()
			}
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
