// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"slices"
)

// draft is the frame of a group of batches, and how the state will differ when it is written.
type draft struct {
	*Journal

	frame   []byte
	message []byte            // of a change of a sink, completed
	numbers map[string]uint64 // of the next event of each sink
	demands map[string]demand // of the batches in the frame
	names   map[string]bool   // the selections that will differ
	objects map[objectID]bool // the objects that will differ
}

// draft makes the frame of the batches for which there is room. The others get their error.
func (j *Journal) draft(group []*request) *draft {
	d := &draft{
		Journal: j, frame: append(j.frames.begin(j.frame), j.acked...),
		numbers: map[string]uint64{}, demands: map[string]demand{}, names: map[string]bool{}, objects: map[objectID]bool{},
	}
	for _, r := range group {
		if r.err = d.room(r.batch); r.err == nil {
			d.add(r.batch)
		}
	}
	if j.frame = d.frame; cap(d.frame) > mostKept {
		j.frame = nil
	}
	return d
}

// room returns a [FullError] if a sink has no room for its events in a batch. A sink for which
// nothing waits has room for any batch.
func (d *draft) room(b *Batch) error {
	for sink, more := range b.events {
		n, bytes := d.demands[sink].events, d.demands[sink].bytes
		if q := d.state.sinks[sink]; q != nil {
			n, bytes = n+len(q.entries), bytes+q.bytes
		}
		if n > 0 && (n+more.events > d.options.Limit || bytes+more.bytes > d.options.limitBytes) {
			return &FullError{Sink: sink, Waiting: n, Bytes: bytes, Room: d.roomFor(sink)}
		}
	}
	for sink, more := range b.events {
		d.demands[sink] = demand{d.demands[sink].events + more.events, d.demands[sink].bytes + more.bytes}
	}
	return nil
}

// add adds the changes of a batch that change anything.
func (d *draft) add(b *Batch) {
	var c change
	begin := 0
	for _, end := range b.ends {
		message := b.encoded[begin:end]
		begin = end
		_ = c.decode(message) // the batch has encoded it
		switch c.verb {
		case addEvent:
			message = d.numbered(&c, message)
		case ackEvents:
			if message = d.waiting(&c); message == nil {
				continue
			}
		default:
			if message = d.bounded(&c, d.kept(message)); message == nil || d.redundant(&c, message) {
				continue
			}
		}
		d.frame = addTo(d.frame, message)
	}
}

// numbered returns the message of an event with its number and the time.
func (d *draft) numbered(c *change, message []byte) []byte {
	sink := string(c.name)
	number := max(d.numbers[sink], 1)
	if q := d.state.sinks[sink]; q != nil {
		number = max(number, q.next)
	}
	d.numbers[sink] = number + 1
	e := encoder(append(d.message[:0], message...))
	e.number(fieldSeq, number)
	e.number(fieldTime, uint64(d.options.clock().UnixNano()))
	d.message = e
	return e
}

// waiting returns the message that acknowledges the events of another one that wait, each once;
// nil if none does.
func (d *draft) waiting(c *change) []byte {
	q := d.state.sinks[string(c.name)]
	if q == nil {
		return nil
	}
	e := newChange(d.message[:0], ackEvents, string(c.name))
	slices.Sort(c.seqs)
	found := false
	for _, seq := range slices.Compact(c.seqs) {
		if _, there := q.find(seq); there {
			e.number(fieldSeq, seq)
			found = true
		}
	}
	d.message = e
	if !found {
		return nil
	}
	return e
}

// redundant reports whether a selection is as a change would make it. If it is not, the draft
// notes that it will differ.
func (d *draft) redundant(c *change, message []byte) bool {
	name, id := string(c.name), d.state.id(c.namespace, c.object)
	s := d.state.selections[name]
	if !d.names[name] && !d.objects[id] && d.has(s, c, id, message) {
		return true
	}
	if s == nil || c.verb == setVersion || c.verb == dropSelection || c.verb == setDictionary {
		d.names[name] = true
	} else {
		d.objects[id] = true
	}
	return false
}

// has reports whether a selection, which is nil if it is not known, is as a change would make it.
func (d *draft) has(s *selection, c *change, id objectID, message []byte) bool {
	if s == nil {
		return c.verb == forgetObject || c.verb == dropSelection
	}
	at, there := s.objects[id]
	switch {
	case c.verb == setVersion:
		return s.known && s.version == string(c.version)
	case c.verb == forgetObject:
		return !there
	case c.verb == dropSelection, c.verb == setDictionary, !there, int(at.n) != len(message), at.sum != checksum(message):
		return false
	}
	written, err := at.read(d.file)
	return err == nil && bytes.Equal(written, message)
}
