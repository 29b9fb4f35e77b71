// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/setpoint-io/setpoint/metrics"
)

// handler answers what is asked about the process. guard stands before all that says more
// than whether it is well.
func (m *Manager) handler(profiling bool, guard func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	for name, checks := range map[string][]check{"healthz": m.alive(), "livez": m.alive(), "readyz": m.ready()} {
		mux.Handle("GET /"+name, healthz(name, checks))
		mux.Handle("GET /"+name+"/{check}", healthz(name, checks))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics.Informers(m.factory), metrics.Queues(m.queueStats), election{m},
	)
	for _, c := range m.collectors() {
		registry.MustRegister(c)
	}
	guarded := func(path string, h http.Handler) { mux.Handle("GET "+path, guard(h)) }
	guarded("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	guarded("/debug/controllers", http.HandlerFunc(m.debugControllers))
	guarded("/debug/informers", http.HandlerFunc(m.debugInformers))
	if profiling {
		guarded("/debug/pprof/", http.HandlerFunc(pprof.Index))
		guarded("/debug/pprof/cmdline", http.HandlerFunc(pprof.Cmdline))
		guarded("/debug/pprof/profile", http.HandlerFunc(pprof.Profile))
		guarded("/debug/pprof/symbol", http.HandlerFunc(pprof.Symbol))
		guarded("/debug/pprof/trace", http.HandlerFunc(pprof.Trace))
	}
	return mux
}
