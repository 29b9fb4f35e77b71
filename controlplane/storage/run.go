// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controlplane/internal/drivers"
)

// Driver is the name of the simulated driver, in StorageClasses, CSIDrivers and volumes.
const Driver = "sim.setpoint.io"

// userAgent is who the simulation says it is, in audit logs and managed fields.
const userAgent = "setpoint-storage"

// Options configures the simulation. Config is needed, all else has a default.
type Options struct {
	// Config reaches the API server. Its user may do everything with PersistentVolumes,
	// PersistentVolumeClaims, the kinds of storage.k8s.io and Events, and read Nodes. It is
	// copied; its limits on requests are not used.
	Config *rest.Config

	// OnReady is called once, from another goroutine, when the StorageClasses, the CSIDriver
	// and the CSINodes of the simulated Nodes exist. It may be nil.
	OnReady func()

	// Logger logs what happens, and what is wrong; nil is slog.Default.
	Logger *slog.Logger
}

// Run simulates the driver until ctx ends; then it waits for all it has started and returns nil.
// It returns an error only for Options that it cannot work with. An API server that cannot be
// reached, at the start or later, is waited for.
func Run(ctx context.Context, o Options) error {
	driver, err := drivers.New(drivers.Options{
		Name: "simulated storage", UserAgent: userAgent, Config: o.Config, OnReady: o.OnReady, Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	driver.Play(ctx, func(p cache.Provider, recorder *events.Recorder) []controller.Runnable {
		publisher := newPublisher(p, recorder, driver.Log)
		running.Go(func() {
			if ensure(ctx, driver) && publisher.CaughtUp(ctx) {
				driver.Ready()
			}
		})
		loops := newProvisioner(p, recorder, driver.Log).loops()
		loops = append(loops, newAttacher(p, recorder, driver.Log).loops()...)
		return append(loops, publisher.Loop("csinode-publisher"))
	})
	return nil
}

// workers is how many objects each part works on at a time. The API server answers some 1,000
// writes a second; each takes it a few milliseconds.
const workers = 16
