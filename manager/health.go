// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// healthz answers as Kubernetes components do: "ok", or each check in a line of its own
// if one fails or ?verbose asks for it. ?exclude=NAME leaves one out.
// Source: k8s.io/apiserver/pkg/server/healthz.
func healthz(name string, checks []check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		chosen, unknown := checks, ""
		if only := r.PathValue("check"); only != "" {
			chosen = slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return c.name != only })
			if len(chosen) == 0 {
				http.Error(w, fmt.Sprintf("%s has no check %q", name, only), http.StatusNotFound)
				return
			}
		}
		for _, excluded := range r.URL.Query()["exclude"] {
			before := len(chosen)
			chosen = slices.DeleteFunc(slices.Clone(chosen), func(c check) bool { return c.name == excluded })
			if len(chosen) == before {
				unknown += fmt.Sprintf("warn: some health checks cannot be excluded: no matches for %q\n", excluded)
			}
		}
		var text strings.Builder
		failed := false
		for _, c := range chosen {
			if err := c.ask(); err != nil {
				failed = true
				fmt.Fprintf(&text, "[-]%s failed: %s\n", c.name, err)
				continue
			}
			fmt.Fprintf(&text, "[+]%s ok\n", c.name)
		}
		text.WriteString(unknown)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, verbose := r.URL.Query()["verbose"]
		switch {
		case failed:
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "%s%s check failed\n", &text, name)
		case verbose:
			fmt.Fprintf(w, "%s%s check passed\n", &text, name)
		default:
			fmt.Fprint(w, "ok")
		}
	}
}
