// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// stop is the end of a run: why it began, and how long each of its steps may take. A run
// has one from its beginning.
type stop struct {
	ctx    context.Context // ends when the stop begins
	cancel context.CancelCauseFunc
	limit  time.Duration
	log    *slog.Logger

	began time.Time // as the goroutine of Run, whose it is, noticed it
}

// ownStopError is why a manager stops that its caller did not stop.
type ownStopError struct {
	of  *stop // a manager may be a part of another
	err error
}

func (r *ownStopError) Error() string { return r.err.Error() }
func (r *ownStopError) Unwrap() error { return r.err }

func newStop(ctx context.Context, limit time.Duration, log *slog.Logger) *stop {
	s := &stop{limit: limit, log: log}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// begin begins the stop for a reason of the manager's own, unless it has begun.
func (s *stop) begin(err error) { s.cancel(&ownStopError{of: s, err: err}) }

// begun reports whether the stop has begun.
func (s *stop) begun() bool { return s.ctx.Err() != nil }

// reason is why the manager stops: nil if it does not, or because its caller ended it.
// The first reason counts.
func (s *stop) reason() error {
	if own, ok := context.Cause(s.ctx).(*ownStopError); ok && own.of == s { //nolint:errorlint // that of another manager does not count
		return own.err
	}
	return nil
}

// asked reports whether the caller stops the manager.
func (s *stop) asked() bool { return s.begun() && s.reason() == nil }

// The steps of a stop have shares of its limit, so that one that takes all of its own
// leaves something to those after it. With 16 s, parts have 12 s: runs that are under way
// have 10 s to finish (controller.Grace) and some to heed the end of their context.
type step int

const (
	parts     step = iota // 12 s of 16 s
	recorders             // 2 s more
	leasing               // 1.5 s more
	informers             // 0.25 s more; the end of serving has as much
)

// share is an eighth of the limit, at most 1 s. Parts have what four of them leave.
func (s *stop) share() time.Duration { return min(time.Second, s.limit/8) }

// until is how long after its beginning the stop may be at a step.
func (s *stop) until(of step) time.Duration {
	quarters := map[step]int{parts: 16, recorders: 8, leasing: 2, informers: 1} // that are left then
	return s.limit - s.share()*time.Duration(quarters[of])/4
}

// do does something that a stop must wait for, and waits until it has ended, or its time is
// over. what says what is left behind then. What ends after that is undone, where there is
// an undo.
func (s *stop) do(of step, what func() string, f, undo func()) error {
	var mu sync.Mutex
	var done, left bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
		mu.Lock()
		defer mu.Unlock()
		done = true
		if left && undo != nil {
			go undo()
		}
	}()
	err := s.wait(of, what, ended)
	mu.Lock()
	defer mu.Unlock()
	if err == nil || done {
		return nil
	}
	left = true
	return err
}

// wait waits until a channel is closed, or the time of a step is over.
func (s *stop) wait(of step, what func() string, ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-s.ctx.Done():
		if s.began.IsZero() {
			s.began = time.Now()
		}
	}
	most := time.Until(s.began.Add(s.until(of)))
	near, over := time.NewTimer(most/2), time.NewTimer(most)
	defer near.Stop()
	defer over.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-near.C:
			s.log.Warn("stopping takes long", "waitingFor", named(what), "atMost", (most - most/2).Round(time.Millisecond))
		case <-over.C:
			return &leftError{what: named(what), after: time.Since(s.began).Round(time.Millisecond)}
		}
	}
}

// namingMost is how long finding out what is in the way may take: it may hold the very lock
// that it takes.
const namingMost = 100 * time.Millisecond

func named(what func() string) string {
	name := make(chan string, 1)
	go func() { name <- what() }()
	timer := time.NewTimer(namingMost)
	defer timer.Stop()
	select {
	case text := <-name:
		return text
	case <-timer.C:
		return "something that cannot be asked what it does"
	}
}

// leftError says what did not end.
type leftError struct {
	what  string
	after time.Duration
}

func (e *leftError) Error() string {
	return fmt.Sprintf("stopping the manager: not ended within %s, and left behind: %s", e.after, e.what)
}

// busy is what runs, by name, and what each of it does.
type busy struct {
	mu  sync.Mutex
	all map[string]func() string
}

// begin notes something until end is called.
func (b *busy) begin(name string, what func() string) (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]func() string{}
	}
	b.all[name] = what
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.all, name)
	}
}

// String says what runs.
func (b *busy) String() string {
	b.mu.Lock()
	all := maps.Clone(b.all)
	b.mu.Unlock()
	var words []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		words = append(words, all[name]())
	}
	return strings.Join(words, ", ")
}

func always(what string) func() string { return func() string { return what } }
