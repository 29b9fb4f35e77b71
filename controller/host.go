// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"log/slog"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
)

// Host is what a controller is built on: a manager, or what stands for one in a
// test.
type Host interface {
	cache.Provider
	Client() *client.Client
	// Recorder returns a recorder of events that name a controller as their source.
	Recorder(controller string) *Recorder
	Logger() *slog.Logger
}

// Runnable is what a host runs: a *[Controller], or anything else that works until
// its context ends. Run returns an error only if it cannot work at all; the host
// then stops as a whole.
type Runnable interface {
	Name() string
	Run(context.Context) error
}

type catchUpKey struct{}

// WithCatchUp has [CatchUp] call f. It is for hosts.
func WithCatchUp(ctx context.Context, f func(context.Context, Loop)) context.Context {
	return context.WithValue(ctx, catchUpKey{}, f)
}

// CatchUp waits until the informers of a loop have seen what the process wrote that led
// before, for as long as the host thinks fit. It is for a Runnable whose informers come to
// be while it runs: those that a loop has before it runs are seen to by the host.
func CatchUp(ctx context.Context, l Loop) {
	if f, ok := ctx.Value(catchUpKey{}).(func(context.Context, Loop)); ok {
		f(ctx, l)
	}
}
