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
