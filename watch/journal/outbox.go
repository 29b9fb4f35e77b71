// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// Entry is an event in the outbox of a sink.
type Entry struct {
	Seq  uint64 // rises with every event of the sink; gives it back to Ack
	ID   string
	At   time.Time // when it was committed
	Data []byte    // the caller's
}

// nextBytes is how much Next returns at most, if it is more than one event.
const nextBytes = 4 << 20

// Next returns events of a sink that were committed after the one numbered after, oldest
// first: at most max of them, and fewer if they are large. They stay in the outbox until
// they are acknowledged; a sink that begins asks for those after 0.
//
// An event that was damaged since the journal was opened is taken out, counted as
// dropped, and logged.
func (j *Journal) Next(sink string, after uint64, limit int) ([]Entry, error) {
	if after == math.MaxUint64 {
		return nil, nil
	}
	var entries []Entry
	var damaged []uint64
	err := j.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucketOutbox)).Bucket([]byte(sink))
		if b == nil {
			return nil
		}
		c, in := b.Cursor(), placeOf(ofEvent, sink)
		size := 0
		for k, v := c.Seek(seqKey(after + 1)); k != nil && len(entries) < limit && size < nextBytes; k, v = c.Next() {
			e, err := decodeEvent(v, in, k)
			if err != nil {
				if len(k) == 8 {
					damaged = append(damaged, binary.BigEndian.Uint64(k))
				}
				continue
			}
			e.Data = slices.Clone(e.Data)
			size += len(e.Data)
			entries = append(entries, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(damaged) > 0 {
		j.log.Error("events in the journal are damaged; they are dropped", "sink", sink, "seqs", damaged)
		r := &request{ops: []op{{verb: opDiscard, name: sink, seqs: damaged}}}
		j.submit(r)
		if r.err != nil {
			return nil, r.err
		}
	}
	return entries, nil
}

// Ack takes events that were sent out of the outbox, in any order. Those that are not
// there any more are no error. It returns when that is on the disk: give it many at once.
func (j *Journal) Ack(sink string, seqs ...uint64) error {
	if len(seqs) == 0 {
		return nil
	}
	r := &request{ops: []op{{verb: opAck, name: sink, seqs: seqs}}}
	j.submit(r)
	return r.err
}

// Waiting returns how many events wait for a sink, how large they are together, and when
// the oldest was committed: the zero time if none waits.
func (j *Journal) Waiting(sink string) (n int, bytes int64, oldest time.Time, err error) {
	j.state.RLock()
	q := j.sinks[sink]
	j.state.RUnlock()
	if q.waiting == 0 {
		return 0, 0, time.Time{}, nil
	}
	err = j.view(func(tx *bbolt.Tx) error {
		if b := tx.Bucket([]byte(bucketOutbox)).Bucket([]byte(sink)); b != nil {
			if k, v := b.Cursor().First(); k != nil {
				if e, err := decodeEvent(v, placeOf(ofEvent, sink), k); err == nil {
					oldest = e.At
				}
			}
		}
		return nil
	})
	return q.waiting, q.bytes, oldest, err
}

// Dropped returns how many events of a sink were dropped since the sink is there: because
// it had no room, or because they were damaged. The count is in the file.
func (j *Journal) Dropped(sink string) uint64 {
	j.state.RLock()
	defer j.state.RUnlock()
	return j.sinks[sink].dropped
}

// Wake returns a channel that receives when a sink may have something new, and once at
// the start if something waits for it. It is for one reader, who asks Next until it
// returns nothing, and then waits.
func (j *Journal) Wake(sink string) <-chan struct{} {
	j.state.Lock()
	defer j.state.Unlock()
	return j.signalsOf(sink).wake
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

// Sinks returns the names of the sinks in the journal, sorted: each that ever had an
// event, and was not removed.
func (j *Journal) Sinks() []string {
	j.state.RLock()
	defer j.state.RUnlock()
	return slices.Sorted(maps.Keys(j.sinks))
}

// RemoveSink forgets a sink that is there no more, with the events that waited for it,
// and returns how many those were.
func (j *Journal) RemoveSink(name string) (dropped int, err error) {
	r := &request{ops: []op{{verb: opRemove, name: name}}}
	j.submit(r)
	return r.taken, r.err
}

// signalsOf returns the signals of a sink. The caller has the state for writing, or the
// journal for itself.
func (j *Journal) signalsOf(sink string) *signals {
	s := j.signals[sink]
	if s == nil {
		s = &signals{wake: make(chan struct{}, 1), room: make(chan struct{})}
		j.signals[sink] = s
	}
	return s
}
