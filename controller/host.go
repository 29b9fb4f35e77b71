// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"log/slog"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
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

// Loop is what can be seen of a loop from outside: a *[Controller] is one.
type Loop interface {
	Name() string
	Queue() *workqueue.Queue[object.Key]
	Waiting() map[object.Key]string
	Failures() (map[object.Key]Failure, uint64)
	GivenUp() uint64
	Panics() map[string]Panic
	Informers() []cache.Handle
}

// Looping is a Runnable with loops inside. A manager shows each of them wherever it shows a
// controller, by a name that no other loop has.
type Looping interface {
	Runnable
	Loops() []Loop
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
