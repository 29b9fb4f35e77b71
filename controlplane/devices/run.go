// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
)

// userAgent is who the simulation says it is, in audit logs and managed fields.
const userAgent = "setpoint-devices"

// flushTime is how long the last Events may take at the end.
const flushTime = time.Second

// Waits between attempts to reach the API server, as those of the simulated nodes.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

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
	if o.Config == nil {
		return errors.New("options of the simulated devices: no Config: say how the API server is reached")
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
		return fmt.Errorf("client of the simulated devices: %w", err)
	}
	served, ok := ensureClass(ctx, api, o.Logger)
	if !ok {
		return nil
	}
	if !served {
		o.Logger.Debug("the API server does not serve resource.k8s.io/v1; there are no simulated devices")
	}
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		o.OnReady()
	}()
	defer func() { <-ready }()
	if served {
		publish(ctx, api, o.Logger)
	}
	<-ctx.Done()
	return nil
}

// ensureClass creates the DeviceClass if it does not exist, and tries again until that or until ctx
// ends. It reports whether the server serves the kind, and false for ok when ctx has ended.
func ensureClass(ctx context.Context, api *client.Client, log *slog.Logger) (served, ok bool) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		_, err := client.For[*resourcev1.DeviceClass](api).Create(ctx, class())
		switch {
		case err == nil || apierrors.IsAlreadyExists(err):
			return true, true
		case apierrors.IsNotFound(err):
			return false, true // the answer of a server without the group
		}
		log.Debug("creating a device class; it will be tried again", "class", Class, "err", err)
		select {
		case <-ctx.Done():
			return false, false
		case <-time.After(wait):
		}
	}
}

// publish runs the publisher until ctx ends.
func publish(ctx context.Context, api *client.Client, log *slog.Logger) {
	instance, err := os.Hostname()
	if err != nil {
		instance = userAgent
	}
	factory := cache.NewFactory(api, log)
	recorder := events.NewRecorder(api, userAgent, instance, log)
	loop := newPublisher(factory, recorder, log).loop()

	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { recorder.Run(ctx, flushTime) })
	running.Go(func() {
		if err := factory.Run(ctx); err != nil {
			log.Error("the informers of the simulated devices have stopped", "err", err)
		}
	})
	running.Go(func() {
		if err := loop.Run(ctx); err != nil {
			log.Error("a part of the simulated devices has stopped", "part", loop.Name(), "err", err)
		}
	})
}
