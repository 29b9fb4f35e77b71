// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Check is one question of several about a process.
type Check struct {
	Name string
	// Ask returns nil if all is well. It must be quick, and safe for concurrent use.
	Ask func() error
}

// unwellAgain is how often the log says at most of one check that it fails.
const unwellAgain = 10 * time.Second

// Health answers whether a process is well. It logs why a check fails, and logs it once for all
// of its handlers. It is safe for concurrent use.
type Health struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]failing // what was logged last, by the names of checks
}

// NewHealth returns a Health that logs to log. nil is slog.Default.
func NewHealth(log *slog.Logger) *Health { return &Health{log: cmp.Or(log, slog.Default())} }

type failing struct {
	why string
	at  time.Time
}

// isNews reports whether a failure is to be logged: another one than the last, and not at
// once after it. The checks need no rights.
func (h *Health) isNews(name, why string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last, ok := h.said[name]; ok && (last.why == why || time.Since(last.at) < unwellAgain) {
		return false
	}
	if h.said == nil {
		h.said = map[string]failing{}
	}
	h.said[name] = failing{why, time.Now()}
	return true
}

// Handler answers as Kubernetes components do: "ok", or each check in a line of its own if one
// fails or ?verbose asks for it. ?exclude=NAME leaves one out. The path value "check", which
// [Server.Health] sets, is the name of the only check that is wanted. The reason of a failure
// is in the log: this page needs no rights. name is that of the page. Source:
// k8s.io/apiserver/pkg/server/healthz.
func (h *Health) Handler(name string, checks ...Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chosen := checks
		if only := r.PathValue("check"); only != "" {
			chosen = slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Name != only })
			if len(chosen) == 0 {
				http.Error(w, fmt.Sprintf("%s has no check %q", name, only), http.StatusNotFound)
				return
			}
		}
		query := r.URL.Query()
		excluded := map[string]bool{}
		for _, name := range query["exclude"] {
			excluded[name] = true
		}
		var text strings.Builder
		failed := false
		for _, c := range chosen {
			if excluded[c.Name] {
				delete(excluded, c.Name)
				continue
			}
			if err := c.Ask(); err != nil {
				failed = true
				fmt.Fprintf(&text, "[-]%s failed: reason withheld\n", c.Name)
				if h.isNews(c.Name, err.Error()) {
					h.log.Info("a health check fails", "check", c.Name, "reason", err)
				}
				continue
			}
			fmt.Fprintf(&text, "[+]%s ok\n", c.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(excluded)) {
			fmt.Fprintf(&text, "warn: some health checks cannot be excluded: no matches for %q\n", name)
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case failed:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "%s%s check failed\n", &text, name)
		case query.Has("verbose"):
			fmt.Fprintf(w, "%s%s check passed\n", &text, name)
		default:
			fmt.Fprint(w, "ok")
		}
	})
}
