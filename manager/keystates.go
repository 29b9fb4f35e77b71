// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// KeyStates returns what the loops of the manager do at present about an object, which needs a kind and a name: those whose
// keys stand for objects of its kind, and, if the UID of the object is known, those whose keys are UIDs. It is safe for concurrent use.
func (m *Manager) KeyStates(o runs.Object) (all []runs.KeyState) {
	if o.Kind == "" || o.Name == "" {
		return nil
	}
	for _, l := range m.loops() {
		if s, ok := l.KeyState(o.Ref().Key); ok && s.Object.Group == o.Group && s.Object.Kind == o.Kind {
			s.Object.UID = o.UID
			all = append(all, s)
		} else if s, ok := l.UIDState(o.UID); ok {
			s.Object = o
			all = append(all, s)
		}
	}
	return all
}

// stateText describes what a loop does about a key.
func stateText(s *runs.KeyState) string {
	var parts []string
	switch {
	case s.State == runs.StateReady:
		parts = append(parts, fmt.Sprintf("ready, %d of %d keys are ahead of it", s.Ahead, s.Ready))
	case s.State == runs.StateHeld && s.Unseen != nil:
		parts = append(parts, fmt.Sprintf("waits until the informer of %s has seen its own %s of %s", s.Unseen.Kind, s.Unseen.Verb, s.Unseen.Object))
	default:
		parts = append(parts, s.State)
	}
	for _, at := range []struct {
		word string
		time *time.Time
	}{{"since ", s.Since}, {"until ", s.Until}} {
		if at.time != nil {
			parts = append(parts, at.word+clock(*at.time))
		}
	}
	if s.Failures > 0 {
		parts = append(parts, fmt.Sprintf("%d attempts", s.Failures))
	}
	for _, i := range s.Informers {
		parts = append(parts, fmt.Sprintf("the informer of %s is not current: %s", i.Kind, i.Trouble))
	}
	return strings.Join(parts, ", ")
}
