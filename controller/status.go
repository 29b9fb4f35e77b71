// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Status is the state of a loop, for debug pages: its keys are text. It is a copy that the
// caller owns.
type Status struct {
	// Group and Kind are those of the objects that the keys stand for. Kind is empty if the keys are no objects.
	Group, Kind string
	// Kept is how many keys wait for the loop to run, while another process leads, see [Keyed.StandBy].
	Kept  int
	Queue workqueue.Stats
	// Keys has some of the keys that are running, ready and delayed, with their causes.
	Keys workqueue.Inspection[string]
	// Waiting has the keys that wait for own writes, and a description of the write that the
	// informers have not seen yet.
	Waiting map[string]string
	// Stale is how many runs were due while their key waited for own writes, by the resource of the
	// write that appeared last. The map is nil if there were none.
	Stale map[schema.GroupResource]uint64
	// Failed has the keys whose last run failed, keys that were given up included. It has a
	// thousand keys at most, the last one that failed among them.
	Failed map[string]Failure
	// Failures is how many runs have failed in all.
	Failures uint64
	// GivenUp is how many times the loop has given up a key: after [MaxRetries], or for a
	// [Terminal] error.
	GivenUp uint64
	// Panics has the panics that the loop has recovered from, by the part that panicked: the
	// reconciler, a predicate or a mapping of a source, a feed.
	Panics map[string]Panic
	// Details has what the controller itself shows, see [Shows].
	Details []Detail
}

// Status returns the state of the loop, with up to keys running, ready and delayed keys each,
// and as many lines of each detail.
// It is safe for concurrent use.
func (c *Keyed[K]) Status(keys int) Status {
	s := Status{Queue: c.queue.Stats(), Keys: inText(c.queue.Inspect(keys)), Waiting: c.own.held(), Stale: c.own.stale(), Panics: c.panics.all(), Details: c.details(keys)}
	if kept := c.follows.backlog.Load(); kept != nil {
		s.Kept = kept.len()
	}
	s.Group, s.Kind = c.objects()
	s.Failed, s.Failures, s.GivenUp = c.failures.all()
	return s
}

// inText returns an inspection with the keys as text.
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
	text.Ready, text.Delayed, text.Levels = waiting(in.Ready), waiting(in.Delayed), in.Levels
	return text
}

// byText returns a map by the text of its keys.
func byText[K comparable, V any](of map[K]V) map[string]V {
	all := make(map[string]V, len(of))
	for key, v := range of {
		all[textOf(key)] = v
	}
	return all
}

// held returns the keys that are held, and why.
func (o *ownWrites[K]) held() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[string]string, len(o.waiting))
	for key, held := range o.waiting {
		all[textOf(key)] = held.text
	}
	return all
}

// stale returns how many runs were due while their key was held.
func (o *ownWrites[K]) stale() map[schema.GroupResource]uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.skipped)
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
