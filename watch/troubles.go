// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

// signs are what the states of an object say of its troubles. The follower reads them: it has the
// states, and many followers work at once.
type signs struct {
	before, now []trouble.Sign
	known       string // the troubles of the last run, if this is the first report of an object
}

// signsOf returns the signs of the states of an event.
func signsOf(e *event.Event, known string) signs {
	return signs{trouble.Of(e.Kind, e.Old), trouble.Of(e.Kind, e.New), known}
}

// troubles has the troubles of the objects of all followers.
type troubles struct {
	tracker *trouble.Tracker
	places  map[trouble.Object]placed        // of the objects that are tracked
	waiting map[id][]*event.Event            // until the creation of their object is released
	state   func(*follower, object.Key) tree // the newest one; nil: there is none
}

// placed is an object that is tracked, after the newest of its reports.
type placed struct {
	follower *follower
	seen     journal.Seen
}

func newTroubles() troubles {
	return troubles{
		tracker: trouble.New(), places: map[trouble.Object]placed{}, waiting: map[id][]*event.Event{},
		state: func(f *follower, key object.Key) tree {
			state, err := treeOf(f.informer.Snapshot().Get(key))
			if err != nil { // the follower logs it
				return nil
			}
			return state
		},
	}
}

// observe notes the signs of a report, and returns the events of what began and of what is over. The
// cursor of the object gets what is known afterwards.
func (p *publisher) observe(what *report, now time.Time) []*event.Event {
	e := what.event
	o := trouble.Object{Kind: e.Kind, Key: e.Key}
	if e.Verb == event.Deleted {
		p.troubles.forget(o)
		return nil
	}
	if e.Verb == event.Replaced { // what was wrong with the object that is gone is over without a word
		what.signs.before, what.signs.known = nil, ""
	}
	p.troubles.tracker.Restore(o, e.UID, what.signs.known, now)
	before := what.signs.before
	if e.Verb == event.Existing { // what it has is no news
		before = what.signs.now
	}
	news := p.troubles.tracker.Observe(o, e.UID, before, what.signs.now, now)
	what.seen.UID, what.seen.Version = e.UID, e.Version // a report has them only if there is a cursor
	what.seen.Trouble = p.troubles.keep(o, what.follower, what.seen)
	return eventsOf(what.follower.observer, e, news)
}

// keep keeps the place of an object while it is tracked, and returns what a cursor keeps of its
// troubles.
func (t *troubles) keep(o trouble.Object, f *follower, seen journal.Seen) string {
	if !t.tracker.Has(o) {
		delete(t.places, o)
		return ""
	}
	seen.Trouble = t.tracker.Encode(o)
	t.places[o] = placed{f, seen}
	if len(t.places) > 2*t.tracker.Len() { // the tracker has forgotten some, because there were too many
		maps.DeleteFunc(t.places, func(o trouble.Object, _ placed) bool { return !t.tracker.Has(o) })
	}
	return seen.Trouble
}

// restore notes the troubles of an object that has not changed since the last run.
func (p *publisher) restore(what report, now time.Time) {
	o := trouble.Object{Kind: what.follower.kind, Key: what.restored}
	p.troubles.tracker.Restore(o, what.seen.UID, what.seen.Trouble, now)
	p.troubles.keep(o, what.follower, what.seen)
}

// forget forgets an object.
func (t *troubles) forget(o trouble.Object) {
	t.tracker.Forget(o)
	delete(t.places, o)
	delete(t.waiting, id{o.Kind, o.Key})
}

// leave forgets the objects of a follower that has ended. The cursor knows their troubles.
func (t *troubles) leave(f *follower) {
	for o, place := range t.places {
		if place.follower == f {
			t.forget(o)
		}
	}
}

// eventsOf returns the events of what began and of what is over.
func eventsOf(observer *observe.Observer, change *event.Event, news trouble.News) []*event.Event {
	var events []*event.Event
	if len(news.Over) > 0 {
		events = append(events, observer.Trouble(change, event.Resolved, news.Over))
	}
	if len(news.Begun) > 0 {
		events = append(events, observer.Trouble(change, event.Failing, news.Begun))
	}
	return events
}

// tell adds events of troubles to the next commit. They do not wait until their object is at rest,
// but its creation comes before them.
func (p *publisher) tell(object id, events []*event.Event) {
	for _, e := range events {
		if !p.wanted(e) {
			continue
		}
		if held := p.held[object]; len(held) > 0 && held[0].event.Verb == event.Created {
			p.troubles.waiting[object] = append(p.troubles.waiting[object], e)
			continue
		}
		p.out = append(p.out, e)
	}
}

// stateAgain is how long the publisher waits for the step of a state that the informer has and the
// follower has not reported.
const stateAgain = time.Second

// observeDue observes objects whose troubles begin or end because time has passed.
func (p *publisher) observeDue(now time.Time) {
	for range batch {
		o, due := p.troubles.tracker.Due(now)
		if !due {
			return
		}
		place := p.troubles.places[o]
		state := p.troubles.state(place.follower, o.Key)
		if state == nil {
			p.troubles.tracker.Postpone(o, now.Add(stateAgain))
			continue
		}
		change := place.follower.observer.Event(observe.Change{Verb: event.Existing, New: state})
		if change.Version != place.seen.Version || change.UID != place.seen.UID {
			p.troubles.tracker.Postpone(o, now.Add(stateAgain))
			continue
		}
		change.Authors = nil // time has passed, and no manager has written
		signs := trouble.Of(o.Kind, change.New)
		news := p.troubles.tracker.Observe(o, change.UID, signs, signs, now)
		place.seen.Trouble = p.troubles.keep(o, place.follower, place.seen)
		p.tell(id{o.Kind, o.Key}, eventsOf(place.follower.observer, change, news))
		p.markTrouble(o, place)
	}
}

// markTrouble adds what is known of the troubles of an object to its cursor. If the settler holds
// the object, the cursor moves with the last report.
func (p *publisher) markTrouble(o trouble.Object, place placed) {
	object := id{o.Kind, o.Key}
	if waiting := p.held[object]; len(waiting) > 0 {
		waiting[len(waiting)-1].seen.Trouble = place.seen.Trouble
		return
	}
	p.mark(report{follower: place.follower, event: &event.Event{Kind: o.Kind, Key: o.Key}, seen: place.seen})
}
