// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"io"
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
// An event that was damaged since it was written is removed, counted as dropped, and logged.
func (j *Journal) Next(sink string, after uint64, limit int) ([]Entry, error) {
	entries, damaged, err := j.next(sink, after, limit)
	if err != nil {
		return nil, j.explain("reading it", err)
	}
	if len(damaged) > 0 {
		j.log.Error("events in the journal are damaged; they are dropped", "sink", sink, "seqs", damaged)
		if r := j.submit(&request{changes: []change{{verb: discardEvents, name: sink, seqs: damaged}}}); r.err != nil {
			return nil, r.err
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
			if len(entries) >= limit || size >= nextBytes || e.seq >= q.written {
				break
			}
			c, err := e.change(j.file)
			switch {
			case errors.Is(err, errFrame), errors.Is(err, errMessage):
				damaged = append(damaged, e.seq)
				continue
			case err != nil:
				return err
			}
			size += e.size
			entries = append(entries, Entry{Seq: e.seq, ID: c.id, At: c.at, Data: c.data})
		}
		return nil
	})
	return entries, damaged, err
}

// change returns what is in the file of an entry.
func (e entry) change(r io.ReaderAt) (change, error) {
	b, err := e.section.read(r)
	if err != nil {
		return change{}, err
	}
	return parseChange(b, texts{})
}

// Ack takes events that were sent out of the outbox, in any order. Those that are not
// there any more are no error. It returns when that is on the disk: give it many at once.
func (j *Journal) Ack(sink string, seqs ...uint64) error {
	if len(seqs) == 0 {
		return nil
	}
	return j.submit(&request{changes: []change{{verb: ackEvents, name: sink, seqs: seqs}}}).err
}

// Waiting returns how many events wait for a sink, how large they are together, and when
// the oldest was committed: the zero time if none waits.
func (j *Journal) Waiting(sink string) (n int, bytes int64, oldest time.Time, err error) {
	err = j.read(func() error {
		if q := j.state.sinks[sink]; q != nil && len(q.entries) > 0 {
			n, bytes, oldest = len(q.entries), q.bytes, q.entries[0].at
		}
		return nil
	})
	return n, bytes, oldest, err
}

// Dropped returns how many events of a sink were dropped since the sink is there: because
// it had no room, or because they were damaged. The count is in the file.
func (j *Journal) Dropped(sink string) uint64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if q := j.state.sinks[sink]; q != nil {
		return q.dropped
	}
	return 0
}

// Wake returns a channel that receives when a sink may have something new, and once at
// the start if something waits for it. It is for one reader, who calls Next until it
// returns nothing, and then waits.
func (j *Journal) Wake(sink string) <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.signalsOf(sink).wake
}

// Sinks returns the names of the sinks in the journal, sorted: each that ever had an
// event, and was not removed.
func (j *Journal) Sinks() []string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return sortedNames(j.state.sinks)
}

// RemoveSink forgets a sink that is not configured any more, with the events that waited for
// it, and returns how many those were.
func (j *Journal) RemoveSink(name string) (dropped int, err error) {
	r := j.submit(&request{changes: []change{{verb: removeSink, name: name}}})
	return r.removed, r.err
}
