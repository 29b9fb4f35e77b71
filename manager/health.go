// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A check is a named question, whose answer is nil if all is well.
type check struct {
	name string
	ask  func() error
}

func ping() error { return nil }

// alive are the checks of /livez and /healthz: they fail where only a restart helps.
func (m *Manager) alive() []check {
	return []check{{"ping", ping}, {"leaderElection", m.checkTerm}}
}

// ready are the checks of /readyz: they fail where this process cannot work, or could not
// take over at once.
func (m *Manager) ready() []check {
	return []check{
		{"ping", ping}, {"server", m.checkServer}, {"informers", m.checkInformers},
		{"leaderElection", m.checkTerm}, {"shutdown", m.checkShutdown},
	}
}

// checkTerm fails from the end of the term on, unless the caller stopped the manager before:
// a process that lost its lease neither works nor stands by, even if it hangs.
func (m *Manager) checkTerm() error {
	term, stop := m.fence.term.Load(), m.stop.Load()
	if term == nil || stop == nil || stop.asked() || term.Context().Err() == nil {
		return nil
	}
	return term.Certain()
}

func (m *Manager) checkServer() error {
	if !m.answered.Load() {
		return fmt.Errorf("%s has not answered yet", m.own.Server())
	}
	return nil
}

// checkInformers fails while informers wait for their first state. Those that something
// keeps from it hold up nobody, as their controllers do not; /debug/informers tells.
func (m *Manager) checkInformers() error {
	var waiting []string
	for _, s := range m.factory.Status() {
		if !s.Synced && s.Trouble == nil {
			waiting = append(waiting, s.Kind)
		}
	}
	if len(waiting) > 0 {
		return errors.New("no first state yet of " + strings.Join(waiting, ", "))
	}
	return nil
}

func (m *Manager) checkShutdown() error {
	if stop := m.stop.Load(); stop != nil && stop.begun() {
		return errors.New("the process is stopping")
	}
	return nil
}

// unwellAgain is how often the log says at most of one check that it fails.
const unwellAgain = 10 * time.Second

// unwell has which failures of checks were logged last.
type unwell struct {
	mu   sync.Mutex
	said map[string]failing
}

type failing struct {
	why string
	at  time.Time
}

// isNews reports whether a failure is to be logged: another one than the last, and not at
// once after it. Anybody may ask for the checks.
func (u *unwell) isNews(name, why string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.said[name]; ok && (last.why == why || time.Since(last.at) < unwellAgain) {
		return false
	}
	if u.said == nil {
		u.said = map[string]failing{}
	}
	u.said[name] = failing{why, time.Now()}
	return true
}

// healthz answers as Kubernetes components do: "ok", or each check in a line of its own
// if one fails or ?verbose asks for it. ?exclude=NAME leaves one out. Why a check fails is
// for the log and for /debug/controllers: this answers everybody.
// Source: k8s.io/apiserver/pkg/server/healthz.
func (m *Manager) healthz(name string, checks []check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chosen := checks
		if only := r.PathValue("check"); only != "" {
			chosen = slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return c.name != only })
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
			if excluded[c.name] {
				delete(excluded, c.name)
				continue
			}
			if err := c.ask(); err != nil {
				failed = true
				fmt.Fprintf(&text, "[-]%s failed: reason withheld\n", c.name)
				if m.unwell.isNews(c.name, err.Error()) {
					m.log.Info("a health check fails", "check", c.name, "reason", err)
				}
				continue
			}
			fmt.Fprintf(&text, "[+]%s ok\n", c.name)
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
	}
}
