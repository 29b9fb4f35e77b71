// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controlplane/internal/drivers"
)

// userAgent is who the simulation says it is, in audit logs and managed fields.
const userAgent = "setpoint-devices"

// Options configures the simulation. Config is needed, all else has a default.
type Options struct {
	// Config reaches the API server. Its user may do everything with DeviceClasses,
	// ResourceSlices and Events, and read Nodes. It is copied; its limits on requests are not
	// used.
	Config *rest.Config

	// OnReady is called once, from another goroutine, when the DeviceClass exists, or when the
	// API server does not serve resource.k8s.io/v1. It may be nil.
	OnReady func()

	// Logger logs what happens, and what is wrong; nil is slog.Default.
	Logger *slog.Logger
}

// Run simulates the devices until ctx ends; then it waits for all it has started and returns nil.
// It returns an error only for Options that it cannot work with. An API server that cannot be
// reached, at the start or later, is waited for. With one that does not serve resource.k8s.io/v1
// it does nothing until ctx ends.
func Run(ctx context.Context, o Options) error {
	driver, err := drivers.New(drivers.Options{
		Name: "simulated devices", UserAgent: userAgent, Config: o.Config, OnReady: o.OnReady, Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	served, ok := drivers.Ensure(ctx, driver, class())
	if !ok {
		return nil
	}
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		driver.Ready()
	}()
	defer func() { <-ready }()
	if !served {
		driver.Log.Debug("the API server does not serve resource.k8s.io/v1; there are no simulated devices")
		<-ctx.Done()
		return nil
	}
	driver.Play(ctx, func(p cache.Provider, recorder *events.Recorder) []controller.Runnable {
		return []controller.Runnable{newPublisher(p, recorder, driver.Log).Loop("device-publisher")}
	})
	return nil
}
