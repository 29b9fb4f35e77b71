// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/manager/serving"
)

func ping() error { return nil }

// alive are the checks of /livez and /healthz: they fail where only a restart helps.
func (m *Manager) alive() []serving.Check {
	return []serving.Check{{Name: "ping", Ask: ping}, {Name: "leaderElection", Ask: m.checkTerm}}
}

// ready are the checks of /readyz: they fail where this process cannot work, or could not
// take over at once.
func (m *Manager) ready() []serving.Check {
	return []serving.Check{
		{Name: "ping", Ask: ping}, {Name: "server", Ask: m.checkServer}, {Name: "informers", Ask: m.checkInformers},
		{Name: "leaderElection", Ask: m.checkTerm}, {Name: "shutdown", Ask: m.checkShutdown},
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

// checkInformers fails while informers wait for their first state. Informers that cannot
// sync delay no other controller; /debug/informers shows them.
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
