// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Status is what a loop does, for people: its keys are text. It is a copy that the caller
// owns.
type Status struct {
	Queue workqueue.Stats
	// Keys are some of those that are worked on, ready and delayed, and why they are there.
	Keys workqueue.Inspection[string]
	// Waiting has the keys that are held back, and the write of each that the informers have
	// not seen yet, in words.
	Waiting map[string]string
	// Failed has the keys whose last run failed, those that were given up among them. Of more
	// than a thousand some are left out, but not the one that failed last.
	Failed map[string]Failure
	// Failures is how many runs have failed in all.
	Failures uint64
	// GivenUp is how many times keys have been given up in all: after too many failures, or
	// for a [Terminal] error.
	GivenUp uint64
	// Panics are those that have been contained, by what panicked: the reconciler, a predicate
	// or a mapping of a source, a feed. What else the loop's informers call, their index
	// functions, say, is theirs to contain and to log.
	Panics map[string]Panic
}

// Status returns what the loop does, with as many keys of each kind as are asked for in Keys.
// It is safe for concurrent use.
func (c *Keyed[K]) Status(keys int) Status {
	s := Status{Queue: c.queue.Stats(), Keys: inText(c.queue.Inspect(keys)), Waiting: c.own.held(), Panics: c.panics.all()}
	s.Failed, s.Failures, s.GivenUp = c.failures.all()
	return s
}

// inText returns what a queue shows of its keys for people.
func inText[K comparable](in workqueue.Inspection[K]) (text workqueue.Inspection[string]) {
	for _, r := range in.Running {
		text.Running = append(text.Running, workqueue.Running[string]{
			Key: textOf(r.Key), Priority: r.Priority, Since: r.Since, Failures: r.Failures, Causes: r.Causes, Dropped: r.Dropped, Next: r.Next,
		})
	}
	waiting := func(all []workqueue.Waiting[K]) (text []workqueue.Waiting[string]) {
		for _, w := range all {
			text = append(text, workqueue.Waiting[string]{Key: textOf(w.Key), Group: w.Group, Failures: w.Failures, Pending: w.Pending})
		}
		return text
	}
	text.Ready, text.Delayed = waiting(in.Ready), waiting(in.Delayed)
	return text
}

// byText returns what is known of keys by their text.
func byText[K comparable, V any](of map[K]V) map[string]V {
	all := make(map[string]V, len(of))
	for key, v := range of {
		all[textOf(key)] = v
	}
	return all
}

func (o *ownWrites[K]) held() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return byText(o.waiting)
}

func (f *failures[K]) all() (last map[string]Failure, total, givenUp uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return byText(f.last), f.total, f.gaveUp
}

func (p *panics) all() map[string]Panic {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.by)
}
