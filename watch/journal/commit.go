// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"slices"
)

// groupChanges is how many changes are written together; one batch may have more.
const groupChanges = 10_000

// request is a batch on its way. What is below done belongs to the writer until done is set,
// and to the caller of submit after that.
type request struct {
	changes  []change
	overflow Overflow

	done    bool
	full    []string // sinks that had no room
	removed int      // events that were removed with their sink
	err     error
}

// Commit writes a batch, all of it or nothing, and returns when it is on the disk. Batches
// that are committed meanwhile share the next write, in the order in which they came.
//
// Full names the sinks that had no room, if the batch drops events; otherwise that is a
// [FullError]. After another error the batch may be committed again: if it is in the file
// after all, its events are there twice, with the same IDs.
func (j *Journal) Commit(b *Batch) (full []string, err error) {
	if b.err != nil {
		return nil, b.err
	}
	if len(b.changes) == 0 {
		return nil, nil
	}
	r := j.submit(&request{changes: b.changes, overflow: b.Overflow})
	return r.full, r.err
}

// CommitWait commits a batch, and waits for room if a sink is full, until the context
// ends; its error is then a [FullError] joined with the context's cause.
func (j *Journal) CommitWait(ctx context.Context, b *Batch) (full []string, err error) {
	for {
		full, err = j.Commit(b)
		var noRoom *FullError
		if !errors.As(err, &noRoom) {
			return full, err
		}
		select {
		case <-noRoom.Room:
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// submit waits until a request is done. The goroutine that gets to write writes for all that
// wait behind it; these find their requests done.
func (j *Journal) submit(r *request) *request {
	j.waitingMu.Lock()
	j.waiting = append(j.waiting, r)
	j.waitingMu.Unlock()

	j.writing.Lock()
	defer j.writing.Unlock()
	for !r.done { // behind more than fits into one group
		j.write(j.group())
	}
	return r
}

func (j *Journal) group() []*request {
	j.waitingMu.Lock()
	defer j.waitingMu.Unlock()
	n, changes := 0, 0
	for n < len(j.waiting) && (n == 0 || changes+len(j.waiting[n].changes) <= groupChanges) {
		changes += len(j.waiting[n].changes)
		n++
	}
	group := slices.Clone(j.waiting[:n])
	j.waiting = slices.Delete(j.waiting, 0, n)
	return group
}

// write writes a group in one frame, so that a crash leaves all of it or nothing.
func (j *Journal) write(group []*request) {
	err := j.restore()
	if err == nil {
		batches, touched := j.stage(group)
		if len(j.frame) > frameHead {
			if err = j.appendFrame(); err == nil {
				j.publish(batches, touched)
				j.compactIfDue()
			}
		}
	}
	for _, r := range group {
		if r.done = true; err != nil {
			r.err, r.full = err, nil
		}
	}
}

// stage makes the changes of a group in the state, and the frame of them. It returns how many
// batches are in it, and the sinks that it touches: true for those that events leave.
func (j *Journal) stage(group []*request) (batches uint64, touched map[string]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.frame, touched = j.frames.begin(j.frame), map[string]bool{}
	for _, r := range group {
		if r.overflow == Block {
			if r.err = j.room(r); r.err != nil {
				continue
			}
		}
		batches++
		for _, c := range r.changes { // a copy: the batch may be committed again
			if !j.prepare(r, &c) {
				continue
			}
			before := len(j.frame)
			if j.frame = j.frames.add(j.frame, j.end, &c); !j.state.apply(&c) {
				j.frame = j.frame[:before]
			} else if c.verb > dropSelection {
				left := c.verb == ackEvents || c.verb == discardEvents || c.verb == removeSink
				touched[c.name] = touched[c.name] || left
			}
		}
	}
	return batches, touched
}

// room returns a [FullError] if a sink has no room for its events in a request. A sink for
// which nothing waits has room for any batch.
func (j *Journal) room(r *request) error {
	wanted := map[string]queue{}
	for i := range r.changes {
		if c := &r.changes[i]; c.verb == addEvent {
			w := wanted[c.name]
			wanted[c.name] = queue{next: w.next + 1, bytes: w.bytes + entrySize(c.id, c.data)}
		}
	}
	for sink, w := range wanted {
		q := j.state.sinks[sink]
		if q != nil && len(q.entries) > 0 && (len(q.entries)+int(w.next) > j.options.Limit || q.bytes+w.bytes > j.options.LimitBytes) {
			return &FullError{Sink: sink, Waiting: len(q.entries), Bytes: q.bytes, Room: j.signalsOf(sink).room}
		}
	}
	return nil
}

// prepare completes a change by what the state says, and reports whether anything is left of it.
func (j *Journal) prepare(r *request, c *change) bool {
	q := j.state.sinks[c.name]
	switch c.verb {
	case addEvent:
		full := q != nil && (len(q.entries) >= j.options.Limit || len(q.entries) > 0 && q.bytes+entrySize(c.id, c.data) > j.options.LimitBytes)
		switch {
		case full && r.overflow == DropNew:
			if !slices.Contains(r.full, c.name) {
				r.full = append(r.full, c.name)
			}
			*c = change{verb: countDropped, name: c.name, count: 1}
			return true
		case q != nil:
			c.seqs = []uint64{q.next}
		default:
			c.seqs = []uint64{1}
		}
		c.at = j.options.Clock()
	case ackEvents, discardEvents:
		if q == nil {
			return false
		}
		c.seqs = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(c.seqs))), func(seq uint64) bool {
			_, found := q.find(seq)
			return !found
		})
		return len(c.seqs) > 0
	case removeSink:
		if q != nil {
			r.removed = len(q.entries)
		}
	default: // is complete
	}
	return true
}

// publish makes events visible that are on the disk, and wakes whoever waits for events or
// for room.
func (j *Journal) publish(batches uint64, touched map[string]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.commits++
	j.batches += batches
	for name, left := range touched {
		s := j.signalsOf(name)
		if left {
			close(s.room)
			s.room = make(chan struct{})
		}
		if q := j.state.sinks[name]; q != nil && q.written < q.next {
			q.written = q.next
			select {
			case s.wake <- struct{}{}:
			default:
			}
		}
	}
}
