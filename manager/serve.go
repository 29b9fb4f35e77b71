// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/metrics"
)

// scrapesAtOnce bounds the scrapes that are gathered at a time. More are answered by 503.
const scrapesAtOnce = 8

// asked is what Serve was called with, and the server that New makes of it.
type asked struct {
	listener net.Listener
	options  serving.Options
	server   *serving.Server
}

// Serve makes the manager serve pages on a listener while it runs: /healthz, /livez and /readyz,
// with a path below them for each check, for every client; /metrics, /debug/controllers,
// /debug/informers and /debug/runs for users with the right. A user with the right to get the path /debug/runs/objects
// sees in /debug/runs what is about an object that the user may get. Package serving says how users are known. Config,
// ClientOptions and Log of the options are the manager's unless they are given. Run closes the
// listener.
func Serve(l net.Listener, o serving.Options) Option {
	return func(m *Manager) { m.servings = append(m.servings, asked{listener: l, options: o}) }
}

// Addresses returns where the manager serves its pages: the addresses of the listeners of [Serve].
func (m *Manager) Addresses() (all []net.Addr) {
	for _, a := range m.servings {
		all = append(all, a.listener.Addr())
	}
	return all
}

// prepare makes the server of one listener.
func (m *Manager) prepare(a *asked) (err error) {
	o := a.options
	o.Config, o.Log = cmp.Or(o.Config, m.config), cmp.Or(o.Log, m.log)
	if o.ClientOptions == nil {
		o.ClientOptions = m.options
	}
	a.server, err = serving.New(a.listener, o)
	return err
}

// serve begins to serve. end ends it within a time.
func (m *Manager) serve() (end func(most time.Duration)) {
	var ends []func(time.Duration)
	for _, a := range m.servings {
		m.addPages(a.server)
		ends = append(ends, a.server.Start())
	}
	return func(most time.Duration) {
		var all sync.WaitGroup
		for _, end := range ends {
			all.Go(func() { end(most) })
		}
		all.Wait()
	}
}

// addPages adds the pages about the manager to a server.
func (m *Manager) addPages(s *serving.Server) {
	s.Health("/healthz", "the same as /livez", m.health.Handler("healthz", m.alive()...))
	s.Health("/livez", "whether a restart would help; ?verbose lists the checks", m.health.Handler("livez", m.alive()...))
	s.Health("/readyz", "whether it works, or could take over at once; ?verbose lists the checks", m.health.Handler("readyz", m.ready()...))
	s.Page("/metrics", "for Prometheus", m.metrics())
	s.Page("/debug/controllers", "the keys of each controller, and what fails; ?controller=NAME, ?limit=N, ?format=json", http.HandlerFunc(m.debugControllers))
	s.PageInParts(runsPath, objectsPath, "what controllers did and why; ?controller=NAME, ?key=KEY, ?kind=KIND&name=NAME, ?origins, ?format=json, ?limit=N", http.HandlerFunc(m.debugRuns))
	s.Page("/debug/informers", "what the informers hold, and what keeps them from being current", http.HandlerFunc(m.debugInformers))
	for _, below := range m.below {
		s.Below(below.path, below.about, below.handler)
	}
}

// below is a handler of all paths below one.
type below struct {
	path, about string
	handler     http.Handler
}

// HandleBelow adds a handler of all paths below a path, such as "/page", to the pages of [Serve]. Users with the right to get
// the path itself reach it; see [serving.Server.Below]. about is its line in the index. It is an error while the manager
// runs, and for a path that has a handler.
func (m *Manager) HandleBelow(path, about string, h http.Handler) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.running:
		return fmt.Errorf("adding the pages below %s to the manager: it is running already", path)
	case slices.ContainsFunc(m.below, func(b below) bool { return b.path == path }):
		return fmt.Errorf("adding the pages below %s to the manager: the path has a handler", path)
	}
	m.below = append(m.below, below{path, about, h})
	return nil
}

// metrics returns the page for Prometheus.
func (m *Manager) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics.Informers(m.factory), metrics.Queues(m.queueStats), election{m},
	)
	for _, c := range m.collectors() {
		registry.MustRegister(c)
	}
	gatherer := prometheus.GathererFunc(without(m.disabledMetrics, registry.Gather))
	return promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesAtOnce})
}

// lookUp keeps current what the servers read from the cluster, until end is called. The error
// says what is missing.
func (m *Manager) lookUp(ctx context.Context) (end func(), err error) {
	var ends []func()
	end = func() {
		for _, e := range ends {
			e()
		}
	}
	for _, a := range m.servings {
		e, err := a.server.LookUp(ctx)
		if err != nil {
			end()
			return nil, err
		}
		ends = append(ends, e)
	}
	return end, nil
}
