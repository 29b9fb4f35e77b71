// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/runs"
)

// Make makes a controller on a manager.
type Make func(*manager.Manager) (manager.Runnable, error)

// Making returns what makes a controller with options.
func Making[O any, R manager.Runnable](constructor func(controller.Host, O) (R, error), o O) Make {
	return func(mgr *manager.Manager) (manager.Runnable, error) { return constructor(mgr, o) }
}

// Process is a manager that runs. Its methods are safe for concurrent use.
type Process struct {
	*manager.Manager

	t     testing.TB
	parts []string        // the names of its controllers
	life  context.Context // ends when the process is killed
	kill  context.CancelCauseFunc
	stop  context.CancelFunc
	ended chan struct{}
	err   error

	underWay underWay
	mu       sync.Mutex
	writes   []string
	warnings []string
}

var errKilled = errors.New("the process was killed")

// Run runs controllers with the credentials of config. They stop when the test ends,
// if not before. The test fails if one of them has changed an object of the cache.
func Run(t testing.TB, config *rest.Config, controllers ...Make) *Process {
	t.Helper()
	p := &Process{t: t, ended: make(chan struct{})}
	p.life, p.kill = context.WithCancelCause(context.WithoutCancel(t.Context()))
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &wire{p, next} })
	var err error
	if p.Manager, err = manager.New(config, manager.Log(slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(t.Output(), nil),
		slog.NewTextHandler((*warned)(p), &slog.HandlerOptions{Level: slog.LevelWarn}),
	)))); err != nil {
		t.Fatal(err)
	}
	p.InformerFactory().DetectMutation(time.Hour) // wanted at the end; no test lasts so long
	for _, build := range controllers {
		c, err := build(p.Manager)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Add(c); err != nil {
			t.Fatal(err)
		}
		p.parts = append(p.parts, c.Name())
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	p.stop = stop
	go func() {
		defer close(p.ended)
		p.err = p.Manager.Run(ctx)
	}()
	t.Cleanup(func() {
		p.Stop()
		p.kill(nil)
		for _, line := range p.InformerFactory().Mutated() {
			t.Errorf("an object of the cache was changed: %s", line)
		}
		if p.err != nil {
			t.Errorf("the manager ended with %v", p.err)
		}
	})
	return p
}

// stopTime is how long a manager may take to end: it gives up by itself after a quarter of a
// minute.
const stopTime = 2 * time.Minute

// Stop ends the process as a signal does, and returns when it has ended. A process that does
// not end fails the test, whose output then has all goroutines.
func (p *Process) Stop() {
	p.t.Helper()
	p.stop()
	if !p.endsWithin(stopTime) {
		_ = pprof.Lookup("goroutine").WriteTo(p.t.Output(), 1) // an aid: the failure says the rest
		p.t.Fatalf("the manager of %s has not ended within %s", strings.Join(p.parts, ", "), stopTime)
	}
}

// endsWithin reports whether the process has ended before a time is over.
func (p *Process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

// Kill ends the process as a crash does: from now on nothing that it sends arrives,
// requests under way break, and what it was about to do is not done.
func (p *Process) Kill() {
	p.kill(errKilled)
	p.Stop()
}

// Writes returns the writes that the server has carried out for the process, except those
// of Events, in the order of its answers: each as its method and path. It waits for the
// answers of those that are under way.
func (p *Process) Writes() []string {
	p.underWay.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes)
}

// Warnings returns the lines of its log that say more than that all is well.
func (p *Process) Warnings() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.warnings)
}

// warned keeps lines of the log of a process.
type warned Process

func (p *warned) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warnings = append(p.warnings, strings.TrimSpace(string(line)))
	return len(line), nil
}

// wire is the way of a process to the server.
type wire struct {
	process *Process
	next    http.RoundTripper
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.process.life.Err() != nil {
		return nil, context.Cause(w.process.life)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	// A watch that stays open ends with the process too.
	context.AfterFunc(w.process.life, func() { cancel(errKilled) })
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/events") {
		return w.next.RoundTrip(r.WithContext(ctx))
	}
	defer w.process.underWay.begin()()
	response, err := w.next.RoundTrip(r.WithContext(ctx))
	if err == nil && response.StatusCode < http.StatusBadRequest {
		w.process.mu.Lock()
		w.process.writes = append(w.process.writes, r.Method+" "+r.URL.Path)
		w.process.mu.Unlock()
	}
	return response, err
}

// Reasons returns the present reasons for a key, each as its code and its sentence, from the record of the manager.
func (p *Process) Reasons(key string) []string { return ReasonsOf(p.Runs(), key) }

// ReasonsOf is as Process.Reasons, from a record.
func ReasonsOf(record *runs.Record, key string) (all []string) {
	for _, run := range record.Present(runs.Query{Key: key}) {
		for _, reason := range run.Reasons {
			all = append(all, reason.Code+": "+reason.String())
		}
	}
	return all
}
