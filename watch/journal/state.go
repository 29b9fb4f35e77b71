// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
)

// state is where in the file everything is that counts.
type state struct {
	selections map[string]*selection
	sinks      map[string]*queue
	seeds      [2]maphash.Seed
	bytes      int64 // of the messages that count
	objects    int64 // of these, of objects
}

// selection is the cursor of a collection: its version, and where the states of its objects are.
//
// The objects stay in the file. With the keys and states of 100,000 objects in a map, a profile
// of Open showed a third of the time in growing and searching the map, a fifth in the garbage
// collector and a sixth in allocating texts: 220 ms in all, and 30 MB resident. This map holds
// numbers, which the garbage collector does not look at: 43 ms, and 10 MB.
type selection struct {
	version string
	known   bool
	objects map[objectID]section

	dictionary section // of the states; its length is 0 if there is none
}

// objectID is a hash of the key of an object, by seeds of this process. Two of a million keys have
// the same hash with a probability of 1 in 10^26, and no user of the cluster can choose such keys.
type objectID [2]uint64

// queue is the outbox of a sink.
type queue struct {
	next    uint64  // number of the next event
	entries []entry // by their numbers
	bytes   int64   // of the entries, as Batch.Event counts them
	missing uint64  // how many numbers there are of which no frame has the event
}

// entry is an event that waits for a sink.
type entry struct {
	seq  uint64
	size int64 // as Batch.Event counts it
	time int64 // of the commit, in nanoseconds since 1970
	section
}

func newState() *state {
	return &state{
		selections: map[string]*selection{}, sinks: map[string]*queue{},
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
}

func (s *state) id(namespace, name []byte) (id objectID) {
	for i, seed := range s.seeds {
		var h maphash.Hash // never fails
		h.SetSeed(seed)
		_, _ = h.Write(namespace)
		_ = h.WriteByte(0)
		_, _ = h.Write(name)
		id[i] = h.Sum64()
	}
	return id
}

// apply makes a change, whose message is a section of the file.
func (s *state) apply(c *change, at section) {
	switch c.verb {
	case seeObject, forgetObject, setVersion, dropSelection, setDictionary:
		s.applySelection(c, at)
	default:
		s.applySink(c, at)
	}
}

func (s *state) applySelection(c *change, at section) {
	sel := s.selections[string(c.name)]
	if sel == nil {
		if c.verb == forgetObject || c.verb == dropSelection {
			return
		}
		sel = &selection{objects: map[objectID]section{}}
		s.selections[string(c.name)] = sel
	}
	switch c.verb {
	case seeObject:
		id := s.id(c.namespace, c.object)
		s.grow(int64(at.n) - int64(sel.objects[id].n))
		sel.objects[id] = at
	case setDictionary:
		s.bytes += int64(at.n) - int64(sel.dictionary.n)
		sel.dictionary = at
	case setVersion:
		sel.known, sel.version = true, string(c.version)
	case forgetObject:
		id := s.id(c.namespace, c.object)
		s.grow(-int64(sel.objects[id].n))
		delete(sel.objects, id)
	default: // dropSelection
		for _, at := range sel.objects {
			s.grow(-int64(at.n))
		}
		s.bytes -= int64(sel.dictionary.n)
		delete(s.selections, string(c.name))
	}
}

// grow takes account of the bytes of an object.
func (s *state) grow(by int64) {
	s.bytes += by
	s.objects += by
}

func (s *state) applySink(c *change, at section) {
	q := s.sinks[string(c.name)]
	if q == nil {
		q = &queue{next: 1}
		if len(c.seqs) > 0 {
			q.next = c.seqs[0] // what was before is in no frame, or in a damaged one
		}
		s.sinks[string(c.name)] = q
	}
	switch c.verb {
	case addEvent:
		if n := len(q.entries); n > 0 && c.seqs[0] <= q.entries[n-1].seq {
			return // this program writes numbers in their order
		}
		q.reach(c.seqs[0])
		size := int64(len(c.id) + len(c.data))
		q.entries = append(q.entries, entry{c.seqs[0], size, int64(c.time), at})
		q.bytes += size
		s.bytes += int64(at.n)
	case ackEvents, discardEvents:
		for _, seq := range c.seqs {
			s.bytes -= int64(q.remove(seq).n)
		}
	case setNext:
		q.next = max(q.next, c.count)
	case removeSink:
		for _, e := range q.entries {
			s.bytes -= int64(e.n)
		}
		delete(s.sinks, string(c.name))
	default: // countDropped: nothing reads the count any more
	}
}

// reach notes that the event with a number was written.
func (q *queue) reach(seq uint64) {
	if seq >= q.next {
		q.missing += seq - q.next
		q.next = seq + 1
	}
}

func (q *queue) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(q.entries, seq, func(e entry, seq uint64) int { return cmp.Compare(e.seq, seq) })
}

// remove removes an event, and returns it. An event that is not there was in a damaged frame, and
// does not count as missing.
func (q *queue) remove(seq uint64) entry {
	i, found := q.find(seq)
	if !found {
		if seq >= q.next {
			q.reach(seq)
		} else {
			q.missing -= min(q.missing, 1)
		}
		return entry{}
	}
	e := q.entries[i]
	q.bytes -= e.size
	if i == 0 {
		q.entries = q.entries[1:] // the usual case, which moves nothing
	} else {
		q.entries = slices.Delete(q.entries, i, i+1)
	}
	return e
}

// mend makes a state safe that lacks frames. It takes the versions away: the watch then lists and
// compares, and tells the changes whose frame was lost. It returns how many events are known to be
// lost.
func (s *state) mend() (lost uint64) {
	for _, sel := range s.selections {
		sel.known, sel.version = true, ""
	}
	for _, q := range s.sinks {
		lost += q.missing
		q.missing = 0
	}
	return lost
}

// sections returns where all messages are that count, in the order of the file.
func (s *state) sections() []section {
	var all []section
	for _, sel := range s.selections {
		all = slices.AppendSeq(all, maps.Values(sel.objects))
		if sel.dictionary.n > 0 {
			all = append(all, sel.dictionary)
		}
	}
	for _, q := range s.sinks {
		for _, e := range q.entries {
			all = append(all, e.section)
		}
	}
	slices.SortFunc(all, section.compare)
	return all
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
