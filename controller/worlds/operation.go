// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package worlds

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Operation is one that is in progress or has failed.
type Operation struct {
	Name  string // a verb, such as "attach"
	Since time.Time
	// Until is when an operation in progress must have ended, and when one that failed may be
	// tried again. It is zero for an operation without a limit.
	Until    time.Time
	Failures int   // in a row, of an operation that failed
	Err      error // why it failed last
}

// Turn says whether an operation may begin.
type Turn struct {
	State TurnState
	// Operation is the one that stands in the way: the one in progress, or the one that failed.
	// It is zero if State is Free.
	Operation Operation
}

// TurnState is whether an operation may begin, and why not.
type TurnState int

const (
	// Free is that the operation may begin, or that Begin has begun it.
	Free TurnState = iota
	// Busy is that an operation is in progress.
	Busy
	// BackingOff is that the same operation has failed and has to wait.
	BackingOff
	// Unclear is that another operation ended without saying whether it happened: the key has to
	// be observed first.
	Unclear
)

// String returns the name of the constant, in lower case.
func (s TurnState) String() string {
	return [...]string{"free", "busy", "backing off", "unclear"}[s]
}

// NotDone marks the error of an operation that has changed nothing. It returns nil for nil.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return &notDoneError{err}
}

type notDoneError struct{ error }

func (e *notDoneError) Unwrap() error { return e.error }

// errOverdue is the error of an operation whose time is over when another one is to begin.
var errOverdue = errors.New("it has not ended in time")

// May returns whether an operation may begin, and begins nothing. An operation in progress whose
// time is over stands in the way until its caller ends it, or begins another one.
func (w *World[K, A]) May(key K, name string) Turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.turn(key, name)
}

// Begin begins an operation if its turn is free. The operation must end within limit, 0 is no
// limit; an operation whose time is over has ended uncertain. Of two callers at the same time, one
// begins.
func (w *World[K, A]) Begin(key K, name string, limit time.Duration) Turn {
	turn, _ := w.begin(key, name, limit)
	return turn
}

// begin is Begin, and returns the operation that has begun too; nil if none has.
func (w *World[K, A]) begin(key K, name string, limit time.Duration) (Turn, *Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.thing(key)
	if r := t.running; r != nil && !r.Until.IsZero() && !time.Now().Before(r.Until) {
		w.end(key, t, errOverdue)
	}
	turn := w.turn(key, name)
	if turn.State != Free {
		return turn, nil
	}
	if t.failed != nil && t.failed.Name != name {
		t.failed = nil
		w.backoff.Forget(key)
	}
	t.running = &Operation{Name: name, Since: time.Now()}
	if limit > 0 {
		t.running.Until = t.running.Since.Add(limit)
	}
	return turn, t.running
}

// goesOn reports whether an operation that has begun is still the one in progress: another caller ends one whose time is over.
func (w *World[K, A]) goesOn(key K, began *Operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.things[key]
	return t != nil && t.running == began
}

func (w *World[K, A]) turn(key K, name string) Turn {
	t := w.things[key]
	if t == nil {
		return Turn{}
	}
	switch f := t.failed; {
	case t.running != nil:
		return Turn{Busy, *t.running}
	case f == nil:
		return Turn{}
	case f.Name != name && t.knowledge == Uncertain:
		return Turn{Unclear, *f}
	case f.Name == name && time.Now().Before(f.Until):
		return Turn{BackingOff, *f}
	}
	return Turn{}
}

// Running returns the operation in progress of a key, also if its time is over.
func (w *World[K, A]) Running(key K) (Operation, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.things[key]; t != nil && t.running != nil {
		return *t.running, true
	}
	return Operation{}, false
}

// End ends the operation in progress of that name: done for nil, failed for an error. The package's
// documentation has what follows from an error. It reports false and does nothing if that operation
// is not in progress, as for an answer that comes late or twice.
//
// After an operation that is done the caller records the new state with Saw or SawNothing.
func (w *World[K, A]) End(key K, name string, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.things[key]
	if t == nil || t.running == nil || t.running.Name != name {
		return false
	}
	w.end(key, t, err)
	return true
}

func (w *World[K, A]) end(key K, t *thing[A], err error) {
	ended := t.running
	t.running = nil
	if err == nil {
		t.failed = nil
		w.backoff.Forget(key)
		return
	}
	if _, certain := errors.AsType[*notDoneError](err); !certain {
		t.knowledge = Uncertain
	}
	ended.Err = err
	ended.Until = time.Now().Add(w.backoff.When(key))
	ended.Failures = w.backoff.NumRequeues(key)
	t.failed = ended
}

// Cancel ends the operation in progress of that name as if it had not begun. It is for operations
// that have changed nothing yet.
func (w *World[K, A]) Cancel(key K, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.things[key]; t != nil && t.running != nil && t.running.Name == name {
		t.running = nil
	}
}

// Run begins an operation, calls do, and ends the operation with its result. If the turn is not
// free, do is not called. do returns the new state of the thing, nil if it is gone. Its context
// ends after limit. If do panics, the key is uncertain. If do returns when its time is over and another caller has begun
// another operation, its result is not recorded.
func (w *World[K, A]) Run(ctx context.Context, key K, name string, limit time.Duration, do func(context.Context) (*A, error)) (Turn, error) {
	turn, began := w.begin(key, name, limit)
	if turn.State != Free {
		return turn, nil
	}
	err := errors.New("it panicked")
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if t := w.things[key]; t != nil && t.running == began {
			w.end(key, t, err)
		}
	}()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	value, failure := do(ctx)
	if err = failure; err != nil {
		return turn, fmt.Errorf("%s: %w", name, err)
	}
	if !w.goesOn(key, began) {
		return turn, fmt.Errorf("%s: %w", name, errOverdue)
	}
	if value == nil {
		w.SawNothing(key)
	} else {
		w.Saw(key, *value)
	}
	return turn, nil
}
