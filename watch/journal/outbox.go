// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"time"
)

// Entry is an event in the outbox of a sink.
type Entry struct {
	Seq  uint64 // rises with every event of the sink; Ack wants it back
	ID   string
	At   time.Time // when it was committed
	Data []byte    // the caller's
}

// nextBytes is how much Next returns at most, if it is more than one event.
const nextBytes = 4 << 20

// Next returns events of a sink that were committed after the one numbered after, oldest
// first: at most limit of them, and fewer if they are large. They stay in the outbox until
// they are acknowledged; a sink that begins asks for those after 0.
//
// An event that was damaged since it was written is removed and logged.
func (j *Journal) Next(sink string, after uint64, limit int) ([]Entry, error) {
	entries, damaged, err := j.next(sink, after, limit)
	if err != nil {
		return nil, j.explain("reading it", err)
	}
	if len(damaged) > 0 {
		j.log.Error("events in the journal are damaged; they are dropped", "sink", sink, "seqs", damaged)
		if err := j.Ack(sink, damaged...); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (j *Journal) next(sink string, after uint64, limit int) (entries []Entry, damaged []uint64, err error) {
	err = j.read(func() error {
		q := j.state.sinks[sink]
		if q == nil {
			return nil
		}
		i, found := q.find(after)
		if found {
			i++
		}
		size := int64(0)
		for _, e := range q.entries[i:] {
			if len(entries) >= limit || size >= nextBytes {
				break
			}
			var c change
			b, err := e.section.read(j.file)
			if err == nil {
				err = c.decode(b)
			}
			switch {
			case errors.Is(err, errFrame), errors.Is(err, errMessage):
				damaged = append(damaged, e.seq)
				continue
			case err != nil:
				return err
			}
			size += e.size
			entries = append(entries, Entry{Seq: e.seq, ID: string(c.id), At: e.committed(), Data: c.data})
		}
		return nil
	})
	return entries, damaged, err
}

func (e entry) committed() time.Time { return time.Unix(0, e.time).UTC() }

// Ack takes events that were sent out of the outbox, in any order. Those that are not there
// any more are no error. It returns when that is written. The disk has it after the next Commit or Close: until then, a loss of
// power, not one of the process, has the events sent again.
func (j *Journal) Ack(sink string, seqs ...uint64) error {
	if len(seqs) == 0 {
		return nil
	}
	var b Batch
	b.ack(sink, seqs)
	return j.Commit(&b)
}

// Waiting returns how many events wait for a sink, how large they are together, and when
// the oldest was committed: the zero time if none waits.
func (j *Journal) Waiting(sink string) (n int, bytes int64, oldest time.Time, err error) {
	err = j.read(func() error {
		if q := j.state.sinks[sink]; q != nil && len(q.entries) > 0 {
			n, bytes, oldest = len(q.entries), q.bytes, q.entries[0].committed()
		}
		return nil
	})
	return n, bytes, oldest, err
}

// Wake returns a channel that receives when a sink may have something new, and once at the
// start if something waits for it. It is for one reader, which calls Next until it returns
// nothing, and then waits.
func (j *Journal) Wake(sink string) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.signalsOf(sink).wake
}

// Sinks returns the names of the sinks that ever had an event in the journal, sorted.
func (j *Journal) Sinks() []string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return sortedNames(j.state.sinks)
}
