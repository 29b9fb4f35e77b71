// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"net/http"
	"net/http/pprof"
	runtimepprof "runtime/pprof"
	"time"
)

const profilesPath = "/debug/pprof/"

// addProfiles adds the pages of net/http/pprof.
func (s *Server) addProfiles(guard func(http.Handler) http.Handler) {
	guarded := func(name string, h http.Handler) { s.mux.Handle("GET "+profilesPath+name, guard(h)) }
	guarded("{$}", http.HandlerFunc(pprof.Index))
	guarded("cmdline", http.HandlerFunc(pprof.Cmdline))
	guarded("profile", lasting(pprof.Profile))
	guarded("symbol", http.HandlerFunc(pprof.Symbol))
	guarded("trace", lasting(pprof.Trace))
	s.mux.Handle("GET "+profilesPath+"{profile}", profiles(guard(lasting(pprof.Index))))
}

// profiles refuses profiles that do not exist, before the API server is asked who may see them.
func profiles(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if runtimepprof.Lookup(r.PathValue("profile")) == nil {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// lasting is for pages that take longer than a request may take to arrive. The packages of
// profiles set the time that writing may take.
func lasting(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it ends early where that is not supported
		next(w, r)
	})
}
