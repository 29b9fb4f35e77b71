// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
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
