// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"log/slog"
	"sync"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Logger returns the logger of the run that ctx belongs to: the loop's logger, with the
// attributes controller, object (the key of the run) and cause (why the key was enqueued).
// The log lines of the loop itself name controller and object in the same way.
//
// A run that does not log pays nothing. All calls for one run return the same logger. It is
// safe for concurrent use, and Logger must be called before the run ends. For a context that
// belongs to no run, as in the test of a function, Logger returns slog.Default.
func Logger(ctx context.Context) *slog.Logger {
	if run, ok := ctx.Value(runKey{}).(logging); ok {
		return run.logger()
	}
	return slog.Default()
}

type runKey struct{}

// logging is a run of a loop over keys of any type.
type logging interface{ logger() *slog.Logger }

// runContext is the context of one run. It is its own value for [runKey], so that the logger
// of a run that does not log costs no allocation.
type runContext[K comparable] struct {
	context.Context //nolint:containedctx // it is a context
	loop            *Keyed[K]
	key             K
	causes          workqueue.Causes
	notes

	once sync.Once
	log  *slog.Logger
}

// Value implements context.Context.
func (r *runContext[K]) Value(key any) any {
	if key == (runKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// logger is made by the first call: the text of the causes is needed only by a run that logs.
func (r *runContext[K]) logger() *slog.Logger {
	r.once.Do(func() {
		r.log = r.loop.log.With("object", textOf(r.key))
		if cause := r.causes.String(); cause != "" {
			r.log = r.log.With("cause", cause)
		}
	})
	return r.log
}
