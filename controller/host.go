// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"log/slog"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
)

// Host is what a controller is made with: a manager, or its replacement in a test.
type Host interface {
	cache.Provider
	Client() *client.Client
	// Recorder returns a recorder of events that name a controller as their source.
	Recorder(controller string) *events.Recorder
	Logger() *slog.Logger
}

// Runnable is what a host runs: a *[Controller], or anything else that runs until its context
// ends. Run returns an error only if it cannot run at all; the host then stops.
type Runnable interface {
	Name() string
	Run(context.Context) error
}

type catchUpKey struct{}

// WithCatchUp returns a context in which [CatchUp] calls f. It is for hosts.
func WithCatchUp(ctx context.Context, f func(context.Context, Loop)) context.Context {
	return context.WithValue(ctx, catchUpKey{}, f)
}

// CatchUp waits until the informers of a loop have seen the writes of the process that led
// before, or until the host's limit. It is for a Runnable that makes loops while it runs. The
// host itself waits for the informers of loops that exist before it runs.
func CatchUp(ctx context.Context, l Loop) {
	if f, ok := ctx.Value(catchUpKey{}).(func(context.Context, Loop)); ok {
		f(ctx, l)
	}
}
