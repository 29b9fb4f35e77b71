// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// Runs that follow each other more often than this, without a write, are a hot loop.
const (
	hotRuns = 50
	hotTime = time.Second // on average from one to the next
)

// An own write that is not seen for this long is worth the first sentence: a watch delivers within milliseconds.
const heldTime = 2 * time.Second

// A state of a key that lasts is worth words in the answer.
const steadyTime = time.Second

// loops lists the last run of each controller whose key stands for the object, with what its loop does at present.
func (t *teller) loops() {
	known := map[string]bool{}
	for i := range t.facts.Runs {
		run := &t.facts.Runs[i].Run
		if known[run.Controller] || !sameObject(run.Object, t.facts.Object) {
			continue
		}
		known[run.Controller] = true
		l := Loop{Controller: run.Controller, Outcome: string(run.Outcome), Error: run.Error, Attempt: run.Attempt, Last: run.Last, NextLook: run.NextLook}
		if run.Runs > 1 {
			l.Idle = run.Runs
			l.Hot = run.Runs >= hotRuns && run.Last.Sub(run.Began) < time.Duration(run.Runs)*hotTime && t.facts.Now.Sub(run.Last) < time.Minute
		}
		if n, how := t.repeats(run.Controller); n > 0 {
			l.Hot, l.Idle, l.Repeats = true, n, how
		}
		t.answer.Loops = append(t.answer.Loops, l)
	}
	for i := range t.facts.Loops {
		t.addState(&t.facts.Loops[i])
	}
}

// addState adds what a loop does at present. A loop that has nothing to do, and never ran for the object, is left out, and so
// are loops of objects below that do not wait for an own write.
func (t *teller) addState(s *runs.KeyState) {
	if !sameObject(s.Object, t.facts.Object) {
		if s.State == runs.StateHeld {
			t.answer.Loops = append(t.answer.Loops, Loop{Controller: s.Controller, Object: &s.Object, State: s})
		}
		return
	}
	for i := range t.answer.Loops {
		l := &t.answer.Loops[i]
		if l.Controller == s.Controller && l.Object == nil && (l.State == nil || l.State.State == runs.StateIdle) { // a manager that stands by is idle
			l.State = s
			return
		}
	}
	if s.State != runs.StateIdle || len(s.Informers) > 0 {
		t.answer.Loops = append(t.answer.Loops, Loop{Controller: s.Controller, State: s})
	}
}

// held returns the state of a loop whose next run has been waiting for an own write for some time: for the object itself, or
// for one below it. It is nil if there is none.
func (t *teller) held(own bool) *runs.KeyState {
	for i := range t.answer.Loops {
		s := t.answer.Loops[i].State
		if s == nil || s.State != runs.StateHeld || s.Unseen == nil || s.Since == nil || t.facts.Now.Sub(*s.Since) < heldTime {
			continue
		}
		if (t.answer.Loops[i].Object == nil) == own {
			return s
		}
	}
	return nil
}

// heldText says for which own write a loop waits; nothing for nil.
func heldText(s *runs.KeyState) string {
	if s == nil {
		return ""
	}
	text := subject(s.Controller) + " waits for its own write of " + s.Unseen.Object.String() + ": "
	if s.Unseen.Lookup {
		return text + "its answer was lost, and the server has not said what became of it"
	}
	text += "the watch of " + s.Unseen.Kind + " lags"
	for i := range s.Informers {
		if s.Informers[i].Kind == s.Unseen.Kind {
			text += " (" + s.Informers[i].Trouble + ")"
		}
	}
	return text
}

// lagText says that an informer is not current.
func lagText(i *runs.InformerLag) string {
	return "its informer of " + i.Kind + " is not current: " + i.Trouble
}

// Name is the controller, with the object if it is not that of the answer.
func (l *Loop) Name() string {
	if l.Object == nil {
		return l.Controller
	}
	return l.Controller + " (" + l.Object.Kind + " " + l.Object.Name + ")"
}

// loopText describes a loop in one line.
func loopText(now time.Time, l *Loop) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if l.Outcome != "" {
		add("%s, the last run %s ago", l.Outcome, ago(now, l.Last))
	} else {
		add("no run in the record")
	}
	if l.Error != "" {
		add("attempt %d: %s", l.Attempt+1, l.Error)
	}
	if l.Idle > 0 {
		add("%s", l.Row())
	}
	if next, what := l.Next(now); next != nil {
		add("%s %s", what, next.Local().Format(time.TimeOnly))
	}
	return strings.Join(append(parts, l.Present(now)...), ", ")
}

// Row says of runs in a row what they did alike. Idle is above 0.
func (l *Loop) Row() string {
	if l.Repeats != "" {
		return fmt.Sprintf("%d runs in a row, %s", l.Idle, l.Repeats)
	}
	return fmt.Sprintf("%d runs in a row changed nothing", l.Idle)
}

// Next returns when the key runs again if nothing changes, and the words for it; nil if that is not known.
func (l *Loop) Next(now time.Time) (at *time.Time, what string) {
	at, what = l.NextLook, "runs again at"
	if s := l.State; s != nil && s.State == runs.StateDelayed {
		if at = s.Until; s.Failures > 0 {
			what = "the back-off ends at"
		}
	}
	if at == nil || !at.After(now) {
		return nil, ""
	}
	return at, what
}

// Present says what the loop does about the key at present, if that lasts.
func (l *Loop) Present(now time.Time) []string {
	if l.State == nil {
		return nil
	}
	return stateTexts(now, l.State)
}

// stateTexts describe what a loop does at present, if that lasts.
func stateTexts(now time.Time, s *runs.KeyState) (all []string) {
	if s.Since != nil && now.Sub(*s.Since) >= steadyTime {
		since := ago(now, *s.Since)
		switch s.State {
		case runs.StateRunning:
			all = append(all, "runs since "+since)
		case runs.StateReady:
			ahead := fmt.Sprint(s.Ahead)
			if s.Ahead >= runs.AheadCounted {
				ahead = "more than " + ahead
			}
			all = append(all, fmt.Sprintf("waits for a worker since %s, with %s of %d keys ahead of it", since, ahead, s.Ready))
		case runs.StateHeld:
			if s.Unseen != nil {
				all = append(all, fmt.Sprintf("the next run waits since %s until the informer of %s has seen its own %s of %s", since, s.Unseen.Kind, s.Unseen.Verb, s.Unseen.Object))
			}
		}
	}
	for i := range s.Informers {
		all = append(all, lagText(&s.Informers[i]))
	}
	return all
}
