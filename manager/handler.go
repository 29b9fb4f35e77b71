// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net"
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/setpoint-io/setpoint/metrics"
)

// scrapesAtOnce bounds the scrapes that are gathered at a time. More are answered by 503.
const scrapesAtOnce = 8

// handler answers what is asked about the process. guard stands before all that says more
// than whether it is well, and health before that.
func (m *Manager) handler(profiling bool, health, guard func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	for name, checks := range map[string][]check{"healthz": m.alive(), "livez": m.alive(), "readyz": m.ready()} {
		mux.Handle("GET /"+name, health(m.healthz(name, checks)))
		mux.Handle("GET /"+name+"/{check}", health(m.healthz(name, checks)))
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
	metrics := prometheus.GathererFunc(without(m.disabledMetrics, registry.Gather))
	guarded("/{$}", index(profiling))
	guarded(metricsPath, promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesAtOnce}))
	guarded(controllersPath, http.HandlerFunc(m.debugControllers))
	guarded(informersPath, http.HandlerFunc(m.debugInformers))
	if profiling {
		guarded(profilesPath+"{$}", http.HandlerFunc(pprof.Index))
		guarded(profilesPath+"cmdline", http.HandlerFunc(pprof.Cmdline))
		guarded(profilesPath+"profile", lasting(pprof.Profile))
		guarded(profilesPath+"symbol", http.HandlerFunc(pprof.Symbol))
		guarded(profilesPath+"trace", lasting(pprof.Trace))
		mux.Handle("GET "+profilesPath+"{profile}", profiles(guard(lasting(pprof.Index))))
	}
	return mux
}

// profiles answers for profiles that there are, before anybody is asked who may see them.
func profiles(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if runtimepprof.Lookup(r.PathValue("profile")) == nil {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// lasting is for what takes longer than a request may take to arrive. The packages of
// profiles see to the time that writing may take.
func lasting(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it ends early where that is not supported
		next(w, r)
	})
}

// local refuses what did not come to this machine by one of its own names, or came from the
// page of somebody else in a browser: such a page can have a name of its own lead to
// 127.0.0.1, and be asked by it what is served there without TLS.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case !isLocal(r.Host):
			http.Error(w, "this port answers to localhost and to addresses such as 127.0.0.1 alone", http.StatusMisdirectedRequest)
		case r.Header.Get("Origin") != "", site != "" && site != "none" && site != "same-origin":
			http.Error(w, "this port does not answer to pages of others", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLocal reports whether a Host header names this machine to itself.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
