// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
)

// Driver is the name of the simulated driver, in StorageClasses, CSIDrivers and volumes.
const Driver = "sim.setpoint.io"

// userAgent is who the simulation says it is, in audit logs and managed fields.
const userAgent = "setpoint-storage"

// flushTime is how long the last Events may take at the end.
const flushTime = time.Second

// Options configures the simulation. Config is needed, all else has a default.
type Options struct {
	// Config reaches the API server. Its user may do everything with PersistentVolumes,
	// PersistentVolumeClaims, the kinds of storage.k8s.io and Events, and read Nodes. It is
	// copied; its limits on requests are not used.
	Config *rest.Config

	// OnReady is called once, from another goroutine, when the StorageClasses exist. It may be
	// nil.
	OnReady func()

	// Logger logs what happens, and what is wrong; nil is slog.Default.
	Logger *slog.Logger
}

// Run simulates the driver until ctx ends; then it waits for all it has started and returns nil.
// It returns an error only for Options that it cannot work with. An API server that cannot be
// reached, at the start or later, is waited for.
func Run(ctx context.Context, o Options) error {
	if o.Config == nil {
		return errors.New("options of the simulated storage: no Config: say how the API server is reached")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnReady == nil {
		o.OnReady = func() {}
	}
	config := rest.CopyConfig(o.Config)
	config.UserAgent = userAgent
	config.QPS = -1 // the workers limit what is under way
	api, err := client.New(config)
	if err != nil {
		return fmt.Errorf("client of the simulated storage: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		instance = userAgent
	}
	factory := cache.NewFactory(api, o.Logger)
	recorder := events.NewRecorder(api, userAgent, instance, o.Logger)
	loops := newProvisioner(factory, recorder, o.Logger).loops()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		if ensureClasses(ctx, api, o.Logger) {
			o.OnReady()
		}
	})
	running.Go(func() { recorder.Run(ctx, flushTime) })
	running.Go(func() {
		if err := factory.Run(ctx); err != nil {
			o.Logger.Error("the informers of the simulated storage have stopped", "err", err)
		}
	})
	for _, loop := range loops {
		running.Go(func() {
			if err := loop.Run(ctx); err != nil {
				o.Logger.Error("a part of the simulated storage has stopped", "part", loop.Name(), "err", err)
			}
		})
	}
	<-ctx.Done()
	return nil
}

// workers is how many objects each part works on at a time. The API server answers some 1,000
// writes a second; each takes it a few milliseconds.
const workers = 16
