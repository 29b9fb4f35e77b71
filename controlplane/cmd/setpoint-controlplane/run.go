// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/controlplane"
	"github.com/setpoint-io/setpoint/controlplane/devices"
	"github.com/setpoint-io/setpoint/controlplane/metrics"
	"github.com/setpoint-io/setpoint/controlplane/nodes"
	"github.com/setpoint-io/setpoint/controlplane/storage"
)

// stopTimeout is how long a stop may take; it takes half a second unless a
// request hangs in an API server.
const stopTimeout = 20 * time.Second

// run starts everything and returns when it has ended: nil after a request to
// stop. ctx carries such requests, see onStopRequest.
func run(ctx context.Context, opts controlplane.Options, simulated nodeFlags, r *reporter) error {
	// Kubernetes ends the process where it sees no way on. The reader of the
	// protocol must learn of it.
	klog.OsExit = func(code int) {
		r.fail(errors.New("a Kubernetes component ended the process; its log says why"))
		os.Exit(max(code, 1))
	}
	opts.Progress = func(e controlplane.Event) { r.component(e.Component, string(e.State)) }

	err := runUntilStopped(ctx, opts, simulated, r)
	if err != nil && !isStopRequest(err) {
		r.fail(err)
		return err
	}
	r.send(message{State: "stopped"})
	return nil
}

func runUntilStopped(ctx context.Context, opts controlplane.Options, simulated nodeFlags, r *reporter) error {
	cp, err := controlplane.Start(ctx, opts)
	if err != nil {
		return err
	}
	stopNodes, err := startNodes(ctx, cp, simulated, opts.Logger, r)
	stopStorage, stopDevices := func() {}, func() {}
	if err == nil {
		stopStorage, err = startStorage(ctx, cp, simulated.count, opts.Logger)
	}
	if err == nil {
		stopDevices, err = startDevices(ctx, cp, simulated.count, opts.Logger)
	}
	if err == nil {
		r.ready(cp)
		select {
		case <-ctx.Done():
		case <-cp.Done():
			err = cp.Err()
		}
	}
	if err != nil && !isStopRequest(err) {
		r.fail(err) // before the stop, which may take its time then
	} else {
		r.send(message{State: "stopping", Reason: context.Cause(ctx).Error()})
	}
	stopDevices()
	stopStorage()
	stopNodes()
	stopCtx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stopTimeout, fmt.Errorf("not done within %s", stopTimeout))
	defer cancel()
	return errors.Join(err, cp.Stop(stopCtx))
}

// startNodes returns when the simulated nodes are ready. The function it returns,
// never nil, ends them.
func startNodes(ctx context.Context, cp *controlplane.ControlPlane, simulated nodeFlags, logger *slog.Logger, r *reporter) (stop func(), err error) {
	if simulated.count == 0 {
		// A process that was killed may have left the APIs of its nodes' metrics behind.
		return func() {}, metrics.Remove(ctx, cp.AdminConfig())
	}
	logger = orWarnings(logger)
	serving, err := cp.NodeServing()
	if err != nil {
		return func() {}, err
	}
	measured, err := cp.MetricsServing()
	if err != nil {
		return func() {}, err
	}
	r.component("nodes", "starting")
	nodesCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready, ended := make(chan struct{}), make(chan struct{})
	var refused error // read after ended
	go func() {
		defer close(ended)
		refused = nodes.Run(nodesCtx, nodes.Options{
			Config:     cp.AdminConfig(),
			Nodes:      simulated.count,
			NoPodCIDRs: simulated.noPodCIDRs,
			Serving:    serving,
			Metrics:    measured,
			OnReady:    func() { close(ready) },
			Logger:     logger.With("component", "nodes"),
		})
	}()
	stop = func() {
		cancel()
		<-ended
	}
	select {
	case <-ready:
		r.component("nodes", "ready")
		return stop, nil
	case <-ended:
		return stop, refused
	case <-ctx.Done():
		return stop, context.Cause(ctx)
	case <-cp.Done():
		return stop, cp.Err()
	}
}

// startStorage returns when the StorageClasses of the simulated storage exist. Without simulated
// nodes there is none. The function it returns, never nil, ends it.
func startStorage(ctx context.Context, cp *controlplane.ControlPlane, nodeCount int, logger *slog.Logger) (stop func(), err error) {
	if nodeCount == 0 {
		return func() {}, nil
	}
	return startDriver(ctx, cp, func(ctx context.Context, onReady func()) error {
		return storage.Run(ctx, storage.Options{
			Config:  cp.AdminConfig(),
			OnReady: onReady,
			Logger:  orWarnings(logger).With("component", "storage"),
		})
	})
}

// startDevices returns when the DeviceClass of the simulated devices exists, if the API server has
// such. Without simulated nodes there are none. The function it returns, never nil, ends them.
func startDevices(ctx context.Context, cp *controlplane.ControlPlane, nodeCount int, logger *slog.Logger) (stop func(), err error) {
	if nodeCount == 0 {
		return func() {}, nil
	}
	return startDriver(ctx, cp, func(ctx context.Context, onReady func()) error {
		return devices.Run(ctx, devices.Options{
			Config:  cp.AdminConfig(),
			OnReady: onReady,
			Logger:  orWarnings(logger).With("component", "devices"),
		})
	})
}

// startDriver starts a simulated driver and returns when it is ready, or why it will not be. The
// function it returns, never nil, ends it.
func startDriver(ctx context.Context, cp *controlplane.ControlPlane, run func(ctx context.Context, onReady func()) error) (stop func(), err error) {
	driverCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready, ended := make(chan struct{}), make(chan struct{})
	var refused error // read after ended
	go func() {
		defer close(ended)
		refused = run(driverCtx, func() { close(ready) })
	}()
	stop = func() {
		cancel()
		<-ended
	}
	select {
	case <-ready:
		return stop, nil
	case <-ended:
		return stop, refused
	case <-ctx.Done():
		return stop, context.Cause(ctx)
	case <-cp.Done():
		return stop, cp.Err()
	}
}

// orWarnings returns the logger, or one that writes warnings to the standard error.
func orWarnings(logger *slog.Logger) *slog.Logger {
	if logger != nil {
		return logger
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// newLogger returns nil at verbosity 0: the library then logs to a file.
func newLogger(out io.Writer, verbosity int, format string) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	switch {
	case format != "text" && format != "json":
		return nil, fmt.Errorf("log format %q: choose text or json", format)
	case verbosity < 0 || verbosity > 10:
		return nil, fmt.Errorf("verbosity %d: choose 0 (quiet) to 10", verbosity)
	case verbosity == 0:
		return nil, nil
	case format == "json":
		return slog.New(slog.NewJSONHandler(out, opts)), nil
	default:
		return slog.New(slog.NewTextHandler(out, opts)), nil
	}
}
