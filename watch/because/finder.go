// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package because

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/watch/event"
)

const (
	// Bound is how long Fill takes at most, unless Options.Within says otherwise.
	Bound = 250 * time.Millisecond
	// Pause is for how long a manager is not asked after an error.
	Pause = 10 * time.Second
	// Later is after which time the record is asked once more about a change that it did not explain in time. By then the run has
	// ended that made the change, if one of the managers did.
	Later = 10 * time.Second
	// LookEvery is the time between two looks for a manager.
	LookEvery = time.Minute

	askAgain   = 25 * time.Millisecond // a run has often ended by then
	mostAsked  = 32                    // events of a batch
	mostKept   = 4096                  // versions with their causes, and changes with their words
	mostMisses = 3                     // in a row, until a field manager's changes are not waited for
	mostLater  = 64                    // changes about which the record is asked later
)

// Options configure a Finder.
type Options struct {
	// Find returns the records of the cluster's managers. An error says that there is none.
	Find func(context.Context) ([]gather.Record, error)
	// Words describes a change in a few words, for the cause of a later one. May be nil.
	Words func(*event.Event) string
	// Within is how long Fill takes at most. Zero is Bound.
	Within time.Duration
}

// Finder finds the causes of events. It is safe for concurrent use.
type Finder struct {
	options Options

	mu     sync.Mutex
	record gather.Record // nil: no manager is known
	looked bool          // Run has looked for managers
	causes map[version]*event.Cause
	words  map[version]string
	// misses counts, by field manager, the changes that the record did not have, not even later, and open those about
	// which it is asked later. A late run and a field manager of no recorded controller look alike until then.
	misses, open map[string]int
	later        chan late
}

// late is a change that the record did not explain in time.
type late struct {
	object  runs.Object
	version version
	by      string // its field manager
	at      time.Time
}

// New returns a Finder that knows no manager yet.
func New(o Options) *Finder {
	if o.Within == 0 {
		o.Within = Bound
	}
	return &Finder{options: o, causes: map[version]*event.Cause{}, words: map[version]string{}, misses: map[string]int{}, open: map[string]int{},
		later: make(chan late, mostLater)}
}

// Run looks for managers at once, and then every [LookEvery], until ctx ends. In between it asks again about changes that the
// record did not explain in time.
func (f *Finder) Run(ctx context.Context) {
	for {
		records, err := f.options.Find(ctx)
		f.mu.Lock()
		f.record, f.looked = nil, true
		if err == nil {
			f.record = joined(records, f.options.Within)
		}
		f.mu.Unlock()
		if !f.askLater(ctx, time.After(LookEvery)) {
			return
		}
	}
}

// askLater asks again about changes, each [Later] after it happened, until look. It returns false if ctx ended first.
func (f *Finder) askLater(ctx context.Context, look <-chan time.Time) bool {
	for {
		select {
		case l := <-f.later:
			select {
			case <-time.After(time.Until(l.at.Add(Later))):
				f.settle(ctx, l)
			case <-ctx.Done():
				return false
			}
		case <-look:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// settle finds out whether the run of a change was late, or none of the managers made it.
func (f *Finder) settle(ctx context.Context, l late) {
	f.mu.Lock()
	record := f.record
	f.mu.Unlock()
	known := false
	var err error
	if record != nil {
		ctx, cancel := context.WithTimeout(ctx, Pause)
		defer cancel()
		var found gather.Found
		found, err = record.About(ctx, l.object)
		known = slices.ContainsFunc(found.Runs, func(run explain.Traced) bool { return slices.Contains(made(&run), l.version) })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[l.by]--; f.open[l.by] <= 0 {
		delete(f.open, l.by)
	}
	switch {
	case known:
		delete(f.misses, l.by)
	case err == nil && record != nil:
		if len(f.misses) > mostKept {
			clear(f.misses)
		}
		f.misses[l.by]++
	}
}

// Fill sets the Cause of the events that the record explains, within Options.Within. The events are those of one batch, in their
// order, and are not published yet.
func (f *Finder) Fill(ctx context.Context, events []*event.Event) {
	record := f.note(events)
	if record == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.options.Within)
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

// note remembers the changes of events in words, and returns the record, if it is to be asked. The words of changes that happen
// while Run looks for the first time are remembered too: a manager that it finds knows what they caused.
func (f *Finder) note(events []*event.Event) gather.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.record == nil && f.looked {
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
		found, err := record.About(ctx, objectOf(e))
		if err != nil {
			if ctx.Err() != nil && time.Since(began) < f.options.Within/2 { // a request that was young when the bound cut it off
				f.miss(e, by)
			}
			return nil
		}
		f.keep(&found)
		if cause := f.known(e, by); cause != nil || !f.missed(by) {
			return cause
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			f.miss(e, by)
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
	return f.misses[by]+f.open[by] < mostMisses
}

// miss notes a change of a field manager that the record did not have in time, so that Run asks for it again.
func (f *Finder) miss(e *event.Event, by string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case f.later <- late{objectOf(e), versionOf(e), by, time.Now()}:
		f.open[by]++
	default: // others wait already
	}
}

// objectOf returns the object of an event.
func objectOf(e *event.Event) runs.Object {
	return runs.Object{Group: e.Kind.Group, Kind: e.Kind.Kind, Namespace: e.Key.Namespace, Name: e.Key.Name, UID: e.UID}
}
