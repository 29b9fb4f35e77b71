// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"log/slog"
	"sync"

	"github.com/setpoint-io/setpoint/watch/event"
)

// judge notices a condition that fails for every object, such as one that reads a field with a
// misspelled name, or compares a number with a text. Such a condition publishes nothing, and only
// objects can show it: custom kinds have no types that a compiler knows.
//
// A condition may fail for a creation because it reads the old state, and be right. So an event for
// which it fails counts only if it fails for an update of the same object from its state to itself, too.
// It is safe for concurrent use.
type judge struct {
	condition func(*event.Event) (bool, error) // nil: there is none
	log       *slog.Logger

	mu      sync.Mutex
	failed  int // objects for which the condition failed
	last    error
	decided bool // it did not fail for another one
	said    bool // the log has it
}

// judged is for how many objects a condition may fail until the log says so.
const judged = 100

// open reports whether it is not known yet if the condition ever succeeds.
func (j *judge) open() bool {
	if j.condition == nil {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.decided && !j.said
}

// object tries the condition on an object.
func (j *judge) object(e *event.Event) {
	trial := *e
	trial.Verb = event.Updated
	if trial.Old == nil {
		trial.Old = trial.New
	}
	if trial.New == nil {
		trial.New = trial.Old
	}
	_, err := j.condition(&trial)
	j.note(err)
}

// event takes account of the result of the condition for an event.
func (j *judge) event(e *event.Event, err error) {
	switch {
	case err == nil:
		j.note(nil)
	case j.open():
		j.object(e)
	}
}

func (j *judge) note(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		if j.said && !j.decided {
			j.log.Warn("the condition did not fail for an object now")
		}
		j.decided = true
		return
	}
	j.last = err
	if j.failed++; j.failed >= judged {
		j.say()
	}
}

// listed is called when everything that was there at the start has been seen: a small cluster may
// not have a hundred objects.
func (j *judge) listed() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed > 0 {
		j.say()
	}
}

// say logs that the condition fails. It is called with mu held.
func (j *judge) say() {
	if j.said || j.decided {
		return
	}
	j.said = true
	j.log.Warn("the condition fails for every object so far, and so nothing is published; does it read a field that they do not have, or compare values of different types?",
		"objects", j.failed, "error", j.last)
}
