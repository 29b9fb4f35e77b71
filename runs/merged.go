// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// Bounds of the search for the changes that one cause stands for: how many runs it returns, and how many it reads. The changes of one cause
// came while one key waited, so there are few.
const (
	mostMerged = 8
	mostRead   = 64
)

// writing is a run with the index of one of its writes.
type writing struct {
	run   Run
	write int
}

// mergedInto returns the runs that changed the object of a cause between the two versions of the cause: a queue keeps
// one cause for all changes of an object that come while a key waits. began is when the run with the cause began.
//
// Without it the newest change would hide the others: a loop that writes the status of its object just after another program has changed
// the spec would seem to have run for its own write alone.
func (r *Record) mergedInto(cause Cause, began time.Time) (all []writing) {
	from, to := number(cause.From), number(cause.Version)
	if cause.Verb != workqueue.Updated || from == 0 || to <= from+1 {
		return nil
	}
	begins := began.UnixNano()
	r.mu.Lock()
	terms := r.termsOf(cause.Object)
	r.mu.Unlock()
	for _, term := range terms {
		read := 0
		r.newestWith(r.kept, term, func(h header) bool { return int64(h.uint64(atBegan)) <= begins }, func(run *Run) (done bool) {
			for i := range run.Writes {
				w := &run.Writes[i]
				switch version := number(w.Version); {
				case version == 0 || !w.Object.same(cause.Object):
				case version <= from:
					done = true // what follows is older
				case version < to:
					all = append(all, writing{*run, i})
				}
			}
			read++
			return done || read >= mostRead || len(all) >= mostMerged
		})
	}
	return all
}
