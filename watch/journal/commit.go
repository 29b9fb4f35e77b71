// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"syscall"
)

// groupChanges is how many changes are written together; one batch may have more.
const groupChanges = 10_000

// request is a batch on its way. What is below done belongs to the writer until done is set,
// and to the caller of submit after that.
type request struct {
	batch *Batch

	done bool
	err  error
}

// Commit writes a batch, all of it or nothing, and returns when it is on the disk. Batches
// that are committed meanwhile share the next write, in the order in which they came.
//
// If a sink has no room, the error is a [FullError]. After another error the batch may be
// committed again: if it is in the file after all, its events are there twice, with the same IDs.
func (j *Journal) Commit(b *Batch) error {
	if b.err != nil || b.Len() == 0 {
		return b.err
	}
	r := &request{batch: b}
	j.waitingMu.Lock()
	j.waiting = append(j.waiting, r)
	j.waitingMu.Unlock()

	// The goroutine that gets to write writes for all that wait behind it; these find their
	// requests done.
	j.writing.Lock()
	defer j.writing.Unlock()
	for !r.done { // behind more than fits into one group
		j.write(j.group())
	}
	return r.err
}

// CommitWait commits a batch, and waits for room if a sink is full, until the context ends;
// its error is then a [FullError] joined with the context's cause.
func (j *Journal) CommitWait(ctx context.Context, b *Batch) error {
	for {
		err := j.Commit(b)
		var noRoom *FullError
		if !errors.As(err, &noRoom) {
			return err
		}
		select {
		case <-noRoom.Room:
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

func (j *Journal) group() []*request {
	j.waitingMu.Lock()
	defer j.waitingMu.Unlock()
	n, changes := 0, 0
	for n < len(j.waiting) && (n == 0 || changes+j.waiting[n].batch.Len() <= groupChanges) {
		changes += j.waiting[n].batch.Len()
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
		touched := j.stage(group)
		if len(j.frame) > frameHead {
			if err = j.appendFrame(); err == nil {
				j.publish(touched)
				j.compactIfDue()
			}
		}
	}
	for _, r := range group {
		if r.done = true; err != nil {
			r.err = err
		}
	}
}

// stage makes the changes of a group in the state, and the frame of them. It returns the sinks
// that it touches: true for those that events leave.
func (j *Journal) stage(group []*request) (touched map[string]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.frame, touched = j.frames.begin(j.frame), map[string]bool{}
	var c change
	var completed []byte
	for _, r := range group {
		if r.err = j.room(r.batch); r.err != nil {
			continue
		}
		begin := 0
		for _, end := range r.batch.ends {
			message := r.batch.encoded[begin:end]
			begin = end
			_ = c.decode(message) // the batch has encoded it
			if c.verb == addEvent || c.verb == ackEvents {
				completed = j.complete(completed[:0], &c, message)
				message = completed
			}
			if j.redundant(&c, message) {
				continue
			}
			var at section
			j.frame, at = j.frames.add(j.frame, j.end, message)
			j.state.apply(&c, at)
			if c.verb == addEvent || c.verb == ackEvents {
				touched[string(c.name)] = touched[string(c.name)] || c.verb == ackEvents
			}
		}
	}
	return touched
}

// room returns a [FullError] if a sink has no room for its events in a batch. A sink for which
// nothing waits has room for any batch.
func (j *Journal) room(b *Batch) error {
	for sink, more := range b.events {
		q := j.state.sinks[sink]
		if q != nil && len(q.entries) > 0 && (len(q.entries)+more.events > j.options.Limit || q.bytes+more.bytes > j.options.limitBytes) {
			return &FullError{Sink: sink, Waiting: len(q.entries), Bytes: q.bytes, Room: j.signalsOf(sink).room}
		}
	}
	return nil
}

// complete appends the message of a change of a sink with what only the state says: the number
// of a new event and the time, or which of the acknowledged events are there.
func (j *Journal) complete(b []byte, c *change, message []byte) encoder {
	q := j.state.sinks[string(c.name)]
	if c.verb == addEvent {
		next := uint64(1)
		if q != nil {
			next = q.next
		}
		c.seqs, c.time = append(c.seqs, next), uint64(j.options.clock().UnixNano())
		e := encoder(append(b, message...))
		e.number(fieldSeq, next)
		e.number(fieldTime, c.time)
		return e
	}
	slices.Sort(c.seqs)
	c.seqs = slices.DeleteFunc(slices.Compact(c.seqs), func(seq uint64) bool {
		if q == nil {
			return true
		}
		_, there := q.find(seq)
		return !there
	})
	e := newChange(b, ackEvents, string(c.name))
	for _, seq := range c.seqs {
		e.number(fieldSeq, seq)
	}
	return e
}

// redundant reports whether the state is as a change would make it.
func (j *Journal) redundant(c *change, message []byte) bool {
	if c.verb == addEvent || c.verb == ackEvents {
		return len(c.seqs) == 0
	}
	s := j.state.selections[string(c.name)]
	if s == nil {
		return c.verb == forgetObject || c.verb == dropSelection
	}
	if c.verb == setVersion {
		return s.known && s.version == string(c.version)
	}
	if c.verb == dropSelection {
		return false
	}
	at, there := s.objects[j.state.id(c.namespace, c.object)]
	if c.verb == forgetObject {
		return !there
	}
	if !there || int(at.n) != len(message) || at.sum != checksum(message) {
		return false
	}
	written, err := at.read(j.file)
	return err == nil && bytes.Equal(written, message)
}

var errTooLarge = errors.New("a batch of 4 GiB and more is not written; make it smaller")

// appendFrame writes the frame that was made. If that fails, the state is read from the file
// again, because it is ahead of it.
func (j *Journal) appendFrame() error {
	err := errTooLarge
	if int64(len(j.frame)) <= math.MaxUint32 { // the length of a frame has 32 bits
		j.frames.seal(j.frame, j.end)
		_, err = j.file.WriteAt(j.frame, j.end)
	}
	if err == nil {
		err = j.sync(j.file)
	}
	if err == nil {
		j.end += int64(len(j.frame))
		if cap(j.frame) > mostKept {
			j.frame = nil
		}
		return nil
	}
	err = j.explain("writing to it", err)
	j.mu.Lock()
	j.broken = err
	j.mu.Unlock()
	if failed := j.restore(); failed != nil {
		return failed
	}
	return err
}

// publish makes events visible that are on the disk, and wakes the goroutines that wait for
// events or for room.
func (j *Journal) publish(touched map[string]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
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

// explain says what was done to which file, and what can be done about an error.
func (j *Journal) explain(doing string, err error) error {
	advice := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		advice = ": make room, it is then tried again"
	case errors.Is(err, syscall.EIO):
		advice = ": the disk may be failing"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		advice = ": it and its directory must be writable"
	case errors.Is(err, ErrNewer):
		advice = ": use the newer program, or another file"
	case errors.Is(err, ErrOlder):
		advice = ": use another file, or move this one away. What changed since is not told, and events that wait in it can be sent by the older program only"
	}
	return fmt.Errorf("the journal %s: %s: %w%s", j.path, doing, err, advice)
}
