// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package because

import (
	"context"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/event"
)

const (
	// Bound is how long Fill takes at most.
	Bound = 250 * time.Millisecond
	// Pause is for how long a manager is not asked after an error.
	Pause = 10 * time.Second
	// LookEvery is the time between two looks for a manager.
	LookEvery = time.Minute

	askAgain   = 25 * time.Millisecond // a run has often ended by then
	mostAsked  = 32                    // events of a batch
	mostKept   = 4096                  // versions with their causes, and changes with their words
	mostMisses = 3                     // in a row, until a field manager's changes are not waited for
)

// Options configure a Finder.
type Options struct {
	// Find returns the record of the cluster's manager. An error says that there is none.
	Find func(context.Context) (gather.Record, error)
	// Words describes a change in a few words, for the cause of a later one. May be nil.
	Words func(*event.Event) string
}

// Finder finds the causes of events. It is safe for concurrent use.
type Finder struct {
	options Options

	mu     sync.Mutex
	record gather.Record // nil: no manager is known
	paused time.Time     // the manager is not asked until then
	causes map[version]*event.Cause
	words  map[version]string
	misses map[string]int // by field manager
}

// New returns a Finder that knows no manager yet.
func New(o Options) *Finder {
	return &Finder{options: o, causes: map[version]*event.Cause{}, words: map[version]string{}, misses: map[string]int{}}
}

// Run looks for a manager at once, and then every [LookEvery], until ctx ends.
func (f *Finder) Run(ctx context.Context) {
	for {
		record, err := f.options.Find(ctx)
		if err != nil {
			record = nil
		}
		f.mu.Lock()
		f.record = record
		clear(f.misses) // the manager may have been busy
		f.mu.Unlock()
		select {
		case <-time.After(LookEvery):
		case <-ctx.Done():
			return
		}
	}
}

// Fill sets the Cause of the events that the record explains, within [Bound]. The events are those of one batch, in their
// order, and are not published yet.
func (f *Finder) Fill(ctx context.Context, events []*event.Event) {
	record := f.note(events)
	if record == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, Bound)
	defer cancel()
	found := make([]*event.Cause, len(events)) // a request that is late writes here, and not into an event
	var asking sync.WaitGroup
	asked := 0
	for i, e := range events {
		if isChange(e) && asked < mostAsked {
			asked++
			asking.Go(func() { found[i] = f.ask(ctx, record, e) })
		}
	}
	asking.Wait()
	for i, e := range events {
		e.Cause = found[i]
	}
}

// isChange reports whether an event is one change that a run may have made.
func isChange(e *event.Event) bool {
	switch e.Verb {
	case event.Created, event.Updated, event.Deleted, event.Replaced, event.Settled:
		return !e.Missed && !e.Stale && e.UID != ""
	case event.Existing, event.Failing, event.Resolved:
	}
	return false
}

// note remembers the changes of events in words, and returns the record, if it is to be asked.
func (f *Finder) note(events []*event.Event) gather.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.record == nil || time.Now().Before(f.paused) {
		return nil
	}
	if len(f.words) > mostKept {
		clear(f.words)
	}
	for _, e := range events {
		if f.options.Words != nil && e.Verb == event.Updated {
			f.words[versionOf(e)] = f.options.Words(e)
		}
	}
	return f.record
}

// ask returns the cause of an event; nil if the record does not have it in time.
func (f *Finder) ask(ctx context.Context, record gather.Record, e *event.Event) *event.Cause {
	by := authorOf(e)
	for wait := askAgain; ; wait *= 2 {
		if cause := f.known(e, by); cause != nil {
			return cause
		}
		began := time.Now()
		found, err := record.About(ctx, runs.Object{Group: e.Kind.Group, Kind: e.Kind.Kind, Namespace: e.Key.Namespace, Name: e.Key.Name, UID: e.UID})
		if err != nil {
			f.failed(ctx, by, time.Since(began))
			return nil
		}
		f.keep(&found)
		if cause := f.known(e, by); cause != nil || !f.missed(by) {
			return cause
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			f.miss(by)
			return nil
		}
	}
}

// authorOf returns the field manager of an event. A deletion has none: all deletions count as those of one.
func authorOf(e *event.Event) string {
	if len(e.Authors) == 0 {
		return ""
	}
	return e.Authors[0].Manager
}

// known returns the cause of an event, if it is known already.
func (f *Finder) known(e *event.Event, by string) *event.Cause {
	f.mu.Lock()
	defer f.mu.Unlock()
	cause := f.causes[versionOf(e)]
	if cause != nil {
		delete(f.misses, by)
	}
	return cause
}

// keep remembers what the runs of an answer made.
func (f *Finder) keep(found *gather.Found) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.causes) > mostKept {
		clear(f.causes)
	}
	for i := range found.Runs {
		versions := made(&found.Runs[i])
		if len(versions) == 0 {
			continue
		}
		cause := causeOf(&found.Runs[i], func(v version) string { return f.words[v] })
		for _, v := range versions {
			f.causes[v] = cause
		}
	}
}

// missed reports whether a change of a field manager is worth a wait.
func (f *Finder) missed(by string) (wait bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.misses[by] < mostMisses
}

// miss counts a change of a field manager that the record did not have in time.
func (f *Finder) miss(by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.misses) > mostKept {
		clear(f.misses)
	}
	f.misses[by]++
}

// failed stops asking for a while, after an error. A request that was cut off at the end of the bound says nothing about the
// manager if it was young.
func (f *Finder) failed(ctx context.Context, by string, after time.Duration) {
	if ctx.Err() != nil && after < Bound/2 {
		f.miss(by)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused = time.Now().Add(Pause)
}
