// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package drivers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/object"
)

// flushTime is how long the last Events may take at the end.
const flushTime = time.Second

// Waits between attempts to reach the API server, as those of the simulated nodes.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 2 * time.Second
)

// Options describes a driver. Config is needed, and so are Name and UserAgent.
type Options struct {
	// Name is what the driver is called in errors and log messages, such as "simulated storage".
	Name string

	// UserAgent is the driver's name in audit logs, managed fields and Events.
	UserAgent string

	// Config reaches the API server. It is copied; its limits on requests are not used.
	Config *rest.Config

	// OnReady is called by Ready. It may be nil.
	OnReady func()

	// Logger logs what happens, and what is wrong; nil is slog.Default.
	Logger *slog.Logger
}

// Driver is a simulated driver that can be started.
type Driver struct {
	options Options

	// API reaches the API server, as the driver's own user agent.
	API *client.Client
	// Log is the logger of the driver, never nil.
	Log *slog.Logger
}

// New returns a driver, or an error for options that it cannot work with.
func New(o Options) (*Driver, error) {
	if o.Config == nil {
		return nil, fmt.Errorf("options of the %s: %w", o.Name, errNoConfig)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnReady == nil {
		o.OnReady = func() {}
	}
	config := rest.CopyConfig(o.Config)
	config.UserAgent = o.UserAgent
	config.QPS = -1 // the workers limit how many requests are in progress
	api, err := client.New(config)
	if err != nil {
		return nil, fmt.Errorf("client of the %s: %w", o.Name, err)
	}
	return &Driver{options: o, API: api, Log: o.Logger}, nil
}

var errNoConfig = errors.New("no Config: say how the API server is reached")

// Ready reports that the driver's objects exist.
func (d *Driver) Ready() { d.options.OnReady() }

// Ensure creates an object that does not exist, and tries again until it does or until ctx ends. An
// object of the same name stays as it is. served is false if the server does not serve the kind,
// and ok is false if ctx has ended.
func Ensure[T object.Object](ctx context.Context, d *Driver, o T) (served, ok bool) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		_, err := client.For[T](d.API).Create(ctx, o)
		switch {
		case err == nil || apierrors.IsAlreadyExists(err):
			return true, true
		case apierrors.IsNotFound(err):
			return false, true // the answer of a server without the group
		}
		d.Log.Debug("creating an object of a driver; it will be tried again", "driver", d.options.Name, "kind", fmt.Sprintf("%T", o), "name", o.GetName(), "err", err)
		select {
		case <-ctx.Done():
			return false, false
		case <-time.After(wait):
		}
	}
}

// Play runs controllers until ctx ends, and returns when all that it has started has ended.
// controllers makes them.
func (d *Driver) Play(ctx context.Context, controllers func(cache.Provider, *events.Recorder) []controller.Runnable) {
	instance, err := os.Hostname()
	if err != nil {
		instance = d.options.UserAgent
	}
	factory := cache.NewFactory(d.API, d.Log)
	recorder := events.NewRecorder(d.API, d.options.UserAgent, instance, d.Log)
	all := controllers(factory, recorder)

	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { recorder.Run(ctx, flushTime) })
	running.Go(func() {
		if err := factory.Run(ctx); err != nil {
			d.Log.Error("the informers of a driver have stopped", "driver", d.options.Name, "err", err)
		}
	})
	for _, one := range all {
		running.Go(func() {
			if err := one.Run(ctx); err != nil {
				d.Log.Error("a controller of a driver has stopped", "driver", d.options.Name, "controller", one.Name(), "err", err)
			}
		})
	}
}
