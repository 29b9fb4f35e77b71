// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"math"
	"slices"
)

// groupChanges is how many changes are written together; one batch may have more.
const groupChanges = 10_000

// request is a batch on its way. done and err belong to the writer until done is set, and to the
// caller of Commit after that.
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

	// The goroutine that holds writing writes the batches of all that wait for it. These find
	// their requests done.
	j.writing.Lock()
	defer j.writing.Unlock()
	for !r.done { // several groups may be before this request
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

// write writes a group in one frame, so that a crash leaves all of it or nothing. The state has
// its changes once they are on the disk.
func (j *Journal) write(group []*request) {
	err := ErrClosed
	if !j.closed {
		d := j.draft(group)
		if err = j.appendFrame(d.frame, slices.ContainsFunc(group, func(r *request) bool { return r.err == nil && r.batch.changed })); err == nil {
			j.compactIfDue()
		}
	}
	for _, r := range group {
		if r.done = true; err != nil {
			r.err = err
		}
	}
}

var errTooLarge = errors.New("a batch of 4 GiB and more is not written; make it smaller")

// mostAcked is how many bytes of acknowledgements may wait for the next commit.
const mostAcked = 64 << 10

// appendFrame writes a frame with its changes to the file, and makes them in the state. If that
// fails, the next frame is written in the same place.
//
// A frame that only acknowledges events does not wait for the disk. A sink that prints acknowledges
// as often as the watch commits, so half of all waits were for that, and an event whose acknowledgement is lost
// with the power is sent again, as one whose acknowledgement was never written. The next frame is written in its place and
// begins with the same messages. So no frame that the disk may lack is before one that it has.
func (j *Journal) appendFrame(frame []byte, durable bool) error {
	if len(frame) == frameHead+len(j.acked) {
		return nil
	}
	durable = durable || len(frame) > mostAcked
	err := errTooLarge
	if int64(len(frame)) <= math.MaxUint32 { // the length of a frame has 32 bits
		j.frames.seal(frame, j.end)
		_, err = j.file.WriteAt(frame, j.end)
	}
	if err == nil && durable {
		err = j.sync(j.file)
	}
	if err != nil {
		return errors.Join(j.explain("writing to it", err), j.file.Truncate(j.end))
	}
	before := len(j.acked)
	j.mu.Lock()
	defer j.mu.Unlock()
	err = j.state.applyFrame(frame[frameHead+before:], j.end+frameHead+int64(before), j.signal)
	if durable {
		j.acked = j.acked[:0]
		j.end += int64(len(frame))
	} else {
		j.acked = append(j.acked, frame[frameHead+before:]...)
	}
	return err
}
