// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

const (
	// mostHold is how long an object that is not at rest is held: as long as people wait for
	// a rollout before they look themselves.
	mostHold = time.Minute
	// mostHeld is how many objects are held: about 100 MB of states of the size of a
	// Pod, for all of which there is an event that just came.
	mostHeld = 10_000
)

// Options say what is held, and for how long.
type Options struct {
	// Window is how long changes of an object are collected, from the first; 0 for not.
	Window time.Duration
	// Settle is how long an object must be at rest before its summary; 0 for no summaries.
	Settle time.Duration
	// Merge returns the event from the old state of the first to the new state of the last.
	// It may not write to either. The Settler sets the identity of the last, and what it
	// knows of all events between: Verb, Time, Since, Merged, Authors, Missed, Summary.
	// The default has both states, and no fields.
	Merge func(first, last *event.Event) *event.Event

	// Tests have less patience, and less memory.
	maxHold time.Duration // mostHold if 0
	limit   int           // mostHeld if 0
}

// Settler collects changes of objects until they are due. It is not safe for concurrent use.
type Settler struct {
	options Options
	held    map[id]*hold
	due     dues
	number  uint64
}

// id is an object among all kinds.
type id struct {
	kind event.Kind
	key  object.Key
}

// hold is what is collected of one object.
type hold struct {
	id          id
	first, last *event.Event
	changes     int // that it stands for
	missed      bool
	authors     []event.Author // newest first
	wanted      []event.Author // of those, the ones that changed the desired state

	began, came time.Time // when the first and the last of them were added
	moving      bool      // it is held until it is at rest
	atRest      bool      // by its last state
	state       string    // the same in words

	due    time.Time
	number uint64 // of all holds that there were
	index  int    // in dues
}

// New returns a Settler that holds nothing yet.
func New(o Options) *Settler {
	if o.Merge == nil {
		o.Merge = states
	}
	o.maxHold, o.limit = cmp.Or(o.maxHold, mostHold), cmp.Or(o.limit, mostHeld)
	return &Settler{options: o, held: map[id]*hold{}}
}

func states(first, last *event.Event) *event.Event {
	return &event.Event{Old: first.Old, New: last.New, Classes: last.Classes}
}

// Held returns how many objects are held.
func (s *Settler) Held() int { return len(s.held) }

// Next returns when Due has something to release: zero if nothing is held.
func (s *Settler) Next() time.Time {
	if len(s.due) == 0 {
		return time.Time{}
	}
	return s.due[0].due
}

// Add adds an event, and returns the events that it releases, in this order: none, if the
// event is held.
func (s *Settler) Add(e *event.Event, now time.Time) []*event.Event {
	object := id{e.Kind, e.Key}
	h := s.held[object]
	var ready []*event.Event
	if h != nil && !follows(h.last, e) {
		ready = append(ready, s.release(h))
		h = nil
	}
	switch {
	case e.Verb == event.Deleted && h != nil:
		h.add(e, now)
		return append(ready, s.release(h))
	case h != nil:
		h.add(e, now)
	case e.Verb == event.Created && s.options.Window > 0,
		e.Verb == event.Updated && (s.options.Window > 0 || s.moves(e)):
		s.number++
		h = &hold{id: object, number: s.number, first: e, began: now}
		h.add(e, now)
		s.held[object] = h
		h.index = len(s.due)
		heap.Push(&s.due, h)
	default:
		return append(ready, e)
	}
	s.schedule(h)
	for len(s.held) > s.options.limit { // each costs a search, which bounds memory well enough
		ready = append(ready, s.release(slices.MinFunc(s.due, byAge)))
	}
	return ready
}

// Due releases the events that are due, the one that is due longest first.
func (s *Settler) Due(now time.Time) []*event.Event {
	var ready []*event.Event
	for len(s.due) > 0 && !s.due[0].due.After(now) {
		ready = append(ready, s.release(s.due[0]))
	}
	return ready
}

// Flush releases everything that is held, the oldest first.
func (s *Settler) Flush() []*event.Event {
	var ready []*event.Event
	for _, h := range slices.SortedFunc(slices.Values(s.due), byAge) {
		ready = append(ready, s.release(h))
	}
	return ready
}

func byAge(a, b *hold) int { return cmp.Compare(a.number, b.number) }

// follows reports whether an event may be merged with one before it: it continues the
// same object's life.
func follows(last, e *event.Event) bool {
	if e.Verb != event.Updated && e.Verb != event.Deleted {
		return false
	}
	return last.UID == e.UID || last.UID == "" || e.UID == ""
}

// moves reports whether an update is one step of several: the object is not at rest, or was
// not before.
func (s *Settler) moves(e *event.Event) bool {
	if s.options.Settle <= 0 || e.Verb != event.Updated {
		return false
	}
	_, rests, known := readiness(e.Kind, e.New)
	if !known || !rests {
		return known
	}
	_, rested, known := readiness(e.Kind, e.Old)
	return known && !rested
}

// schedule says when a hold is due, after an event was added to it.
func (s *Settler) schedule(h *hold) {
	if h.first.Verb == event.Updated && !h.moving {
		h.moving = s.moves(h.last)
	}
	switch {
	case !h.moving:
		h.due = h.began.Add(s.options.Window)
	default:
		h.due = h.began.Add(s.options.maxHold)
		h.state, h.atRest, _ = readiness(h.last.Kind, h.last.New)
		if rest := h.came.Add(s.options.Settle); h.atRest && rest.Before(h.due) {
			h.due = rest
		}
	}
	heap.Fix(&s.due, h.index)
}

// add adds an event to what is held.
func (h *hold) add(e *event.Event, now time.Time) {
	h.last, h.came = e, now
	h.changes += max(e.Merged, 1)
	h.missed = h.missed || e.Missed
	h.authors = join(e.Authors, h.authors)
	if e.Is(event.Content) {
		h.wanted = join(e.Authors, h.wanted)
	}
}

// release ends a hold, and returns the event that it has become.
func (s *Settler) release(h *hold) *event.Event {
	delete(s.held, h.id)
	heap.Remove(&s.due, h.index)
	return s.become(h)
}

// dues is a heap of holds, the one that is due first on top.
type dues []*hold

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	if c := d[i].due.Compare(d[j].due); c != 0 {
		return c < 0
	}
	return d[i].number < d[j].number
}
func (d dues) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push is of [heap.Interface].
func (d *dues) Push(x any) {
	if h, ok := x.(*hold); ok {
		h.index = len(*d)
		*d = append(*d, h)
	}
}

// Pop is of [heap.Interface].
func (d *dues) Pop() any {
	last := len(*d) - 1
	h := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return h
}
