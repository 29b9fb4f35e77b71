// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"container/heap"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// mostTracked is how many objects a Tracker has at most: some 25 MB of them.
const mostTracked = 50_000

// Object identifies an object among all kinds.
type Object struct {
	Kind event.Kind
	Key  object.Key
}

// News is what is to be reported of an object now.
type News struct {
	// Begun are the troubles that have begun, or have become worse.
	Begun []Note
	// Over are those that have ended.
	Over []Note
}

// Note is a trouble, with a sentence about it.
type Note struct {
	event.Trouble
	Text string
}

// Tracker has the episodes of objects: what is wrong with each, since when, and whether it was reported.
// It has no clock: its caller passes the time, which must not go back. It is not safe for
// concurrent use.
type Tracker struct {
	objects map[Object]*tracked
	due     dues
	limit   int
}

// tracked is an object with an episode at least.
type tracked struct {
	object   Object
	uid      types.UID
	episodes []episode
	due      time.Time // zero: nothing happens without another state
	index    int       // in dues; -1: not there
}

// New returns a Tracker that knows nothing yet.
func New() *Tracker {
	return &Tracker{objects: map[Object]*tracked{}, limit: mostTracked}
}

// Len returns how many objects are tracked.
func (t *Tracker) Len() int { return len(t.objects) }

// Has reports whether an object is tracked: something is wrong with it, or was a moment ago.
func (t *Tracker) Has(o Object) bool { return t.objects[o] != nil }

// Observe notes the signs of an object's state, and returns what is to be reported. Before are the signs
// of the state before, if it is known: what was bad there already counts as reported. The same state may
// be observed several times: after [Tracker.Due] it must be, since time has passed.
func (t *Tracker) Observe(o Object, uid types.UID, before, signs []Sign, now time.Time) News {
	entry := t.objects[o]
	if entry != nil && entry.uid != uid {
		t.Forget(o)
		entry = nil
	}
	if entry == nil {
		entry = &tracked{object: o, uid: uid, index: -1}
	}
	news := entry.observe(before, signs, now)
	t.keep(entry)
	return news
}

// Forget forgets an object, which is gone.
func (t *Tracker) Forget(o Object) {
	if entry := t.objects[o]; entry != nil {
		entry.episodes = nil
		t.keep(entry)
	}
}

// Next returns when an object must be observed again although its state is the same: the zero time
// if none must.
func (t *Tracker) Next() time.Time {
	if len(t.due) == 0 {
		return time.Time{}
	}
	return t.due[0].due
}

// Due returns an object that must be observed again now, and whether there is one. The caller
// observes or postpones it before the next call.
func (t *Tracker) Due(now time.Time) (Object, bool) {
	if len(t.due) == 0 || t.due[0].due.After(now) {
		return Object{}, false
	}
	return t.due[0].object, true
}

// Postpone has an object observed at a time, whatever the reason.
func (t *Tracker) Postpone(o Object, until time.Time) {
	if entry := t.objects[o]; entry != nil {
		entry.due = until
		t.schedule(entry)
	}
}

// keep keeps an object while it has episodes. Where there are too many objects, an arbitrary one is
// forgotten for it: its trouble is reported again if it goes on, and its end is not.
func (t *Tracker) keep(entry *tracked) {
	if len(entry.episodes) == 0 {
		if entry.index >= 0 {
			heap.Remove(&t.due, entry.index)
		}
		delete(t.objects, entry.object)
		return
	}
	if t.objects[entry.object] == nil && len(t.objects) >= t.limit {
		for other := range t.objects {
			t.Forget(other)
			break
		}
	}
	t.objects[entry.object] = entry
	entry.due = entry.next()
	t.schedule(entry)
}

// schedule puts an object where it belongs among those that are due.
func (t *Tracker) schedule(entry *tracked) {
	switch {
	case entry.due.IsZero() && entry.index >= 0:
		heap.Remove(&t.due, entry.index)
	case entry.due.IsZero():
	case entry.index < 0:
		heap.Push(&t.due, entry)
	default:
		heap.Fix(&t.due, entry.index)
	}
}

// next returns when the first of the episodes has something to tell.
func (entry *tracked) next() time.Time {
	var next time.Time
	major := entry.isMajor()
	for i := range entry.episodes {
		if due := entry.episodes[i].due(major); !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// observe notes the signs of a state. What a state has no sign of any more ends without a word: the
// container is gone, or the Pod is being deleted.
func (entry *tracked) observe(before, signs []Sign, now time.Time) News {
	var news News
	entry.episodes = slices.DeleteFunc(entry.episodes, func(e episode) bool {
		return !slices.ContainsFunc(signs, func(s Sign) bool { return s.Name == e.Name })
	})
	for i := range signs {
		entry.note(&signs[i], named(before, signs[i].Name), now)
	}
	major := entry.isMajor()
	for i := range signs {
		s := &signs[i]
		at := entry.find(s.Name)
		if at < 0 {
			continue
		}
		e := &entry.episodes[at]
		switch {
		case e.isWorse(s, now, major):
			e.Reported = s.grade
			news.Begun = append(news.Begun, e.begun(s))
		case e.isOver(now):
			if e.Reported > 0 {
				news.Over = append(news.Over, e.over(s))
			}
			entry.episodes = slices.Delete(entry.episodes, at, at+1)
		}
	}
	return news
}

// isMajor reports whether there is an episode that is not minor.
func (entry *tracked) isMajor() bool {
	return slices.ContainsFunc(entry.episodes, func(e episode) bool { return !e.minor })
}

func (entry *tracked) find(name string) int {
	return slices.IndexFunc(entry.episodes, func(e episode) bool { return e.Name == name })
}

// note brings the episode of a sign up to date, or begins one.
func (entry *tracked) note(s, before *Sign, now time.Time) {
	at := entry.find(s.Name)
	if at < 0 {
		e, begins := begin(s, before, now)
		if begins {
			entry.episodes = append(entry.episodes, e)
		}
		return
	}
	e := &entry.episodes[at]
	e.note(s, now)
	if e.Reported == 0 && s.health == good && e.Restarts == s.Restarts { // it was never reported, and is no more
		entry.episodes = slices.Delete(entry.episodes, at, at+1)
	}
}

// named returns the sign of a name, nil if there is none.
func named(signs []Sign, name string) *Sign {
	if i := slices.IndexFunc(signs, func(s Sign) bool { return s.Name == name }); i >= 0 {
		return &signs[i]
	}
	return nil
}

// dues is a heap of objects, the one that is due first on top.
type dues []*tracked

func (d dues) Len() int           { return len(d) }
func (d dues) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d dues) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push is of [heap.Interface].
func (d *dues) Push(x any) {
	if entry, ok := x.(*tracked); ok {
		entry.index = len(*d)
		*d = append(*d, entry)
	}
}

// Pop is of [heap.Interface].
func (d *dues) Pop() any {
	last := len(*d) - 1
	entry := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	entry.index = -1
	return entry
}
