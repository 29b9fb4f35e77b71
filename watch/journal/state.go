// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// state is what the frames of a file add up to. Events themselves stay in the file.
type state struct {
	selections map[string]*selection
	sinks      map[string]*queue
}

// selection is what is known of the objects that somebody watches.
type selection struct {
	version string
	known   bool
	objects map[object.Key]Seen
}

// queue is the outbox of a sink.
type queue struct {
	next    uint64 // number of the next event
	dropped uint64
	entries []entry // by their numbers
	bytes   int64   // of the entries, as entrySize counts them
	// written says which entries may be handed out: those with smaller numbers are on the
	// disk. The others are in a frame that is being written.
	written uint64
	// missing counts the numbers of which no frame has the event.
	missing uint64
}

// entry is an event that waits for a sink.
type entry struct {
	seq  uint64
	size int64
	at   time.Time
	section
}

func newState() *state {
	return &state{selections: map[string]*selection{}, sinks: map[string]*queue{}}
}

// apply makes a change, and reports whether it changed anything.
func (s *state) apply(c *change) bool {
	switch c.verb {
	case seeObject, forgetObject, setVersion, dropSelection:
		return s.applySelection(c)
	default:
		return s.applySink(c)
	}
}

func (s *state) applySelection(c *change) bool {
	sel, there := s.selections[c.name]
	if !there && (c.verb == seeObject || c.verb == setVersion) {
		sel = &selection{objects: map[object.Key]Seen{}}
		s.selections[c.name] = sel
	}
	switch c.verb {
	case seeObject:
		old, had := sel.objects[c.key]
		sel.objects[c.key] = c.seen
		return !had || old != c.seen
	case setVersion:
		same := sel.known && sel.version == c.seen.Version
		sel.known, sel.version = true, c.seen.Version
		return !same
	case forgetObject:
		if there {
			_, there = sel.objects[c.key]
			delete(sel.objects, c.key)
		}
		return there
	default:
		delete(s.selections, c.name)
		return there
	}
}

func (s *state) applySink(c *change) bool {
	q, there := s.sinks[c.name]
	if c.verb == removeSink {
		delete(s.sinks, c.name)
		return there
	}
	if !there {
		q = &queue{next: 1}
		if c.verb == addEvent || c.verb == ackEvents || c.verb == discardEvents {
			q.next = c.seqs[0] // what was before is in no frame, or in a damaged one
		}
		s.sinks[c.name] = q
	}
	switch c.verb {
	case addEvent:
		q.add(c)
	case ackEvents:
		q.remove(c.seqs)
	case discardEvents:
		q.remove(c.seqs)
		q.dropped += uint64(len(c.seqs))
	case countDropped:
		q.dropped += c.count
	default: // setNext
		q.next = max(q.next, c.count)
	}
	return true
}

// entrySize is what an event counts for in the limit of bytes.
func entrySize(id string, data []byte) int64 { return int64(len(id) + len(data)) }

func (q *queue) add(c *change) {
	seq := c.seqs[0]
	if n := len(q.entries); n > 0 && seq <= q.entries[n-1].seq {
		return // only a file that somebody made by hand has this
	}
	q.reach(seq)
	q.entries = append(q.entries, entry{seq, entrySize(c.id, c.data), c.at, c.encoded})
	q.bytes += entrySize(c.id, c.data)
}

// reach notes that the event with a number was written once.
func (q *queue) reach(seq uint64) {
	if seq >= q.next {
		q.missing += seq - q.next
		q.next = seq + 1
	}
}

func (q *queue) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(q.entries, seq, func(e entry, seq uint64) int { return cmp.Compare(e.seq, seq) })
}

// remove removes events. An event that is not there was in a damaged frame, and is not missed.
func (q *queue) remove(seqs []uint64) {
	for _, seq := range seqs {
		i, found := q.find(seq)
		switch {
		case !found && seq >= q.next:
			q.reach(seq)
		case !found:
			q.missing -= min(q.missing, 1)
		default:
			q.bytes -= q.entries[i].size
			if i == 0 {
				q.entries = q.entries[1:] // the usual case, which moves nothing
			} else {
				q.entries = slices.Delete(q.entries, i, i+1)
			}
		}
	}
}

// mend makes a state safe that lacks frames. Whoever watches lists each selection and compares,
// so that changes of which the frame was lost are told all the same. It returns how many events
// are known to be lost.
func (s *state) mend() (lost uint64) {
	for _, sel := range s.selections {
		sel.known, sel.version = true, ""
	}
	for _, q := range s.sinks {
		q.dropped += q.missing
		lost += q.missing
		q.missing = 0
	}
	return lost
}

// changes returns the changes that make this state of an empty one, without the events.
func (s *state) changes() iter.Seq[*change] {
	return func(yield func(*change) bool) {
		for name, sel := range s.selections {
			for key, seen := range sel.objects {
				if !yield(&change{verb: seeObject, name: name, key: key, seen: seen}) {
					return
				}
			}
			if sel.known && !yield(&change{verb: setVersion, name: name, seen: Seen{Version: sel.version}}) {
				return
			}
		}
		for name, q := range s.sinks {
			if !yield(&change{verb: setNext, name: name, count: q.next}) ||
				q.dropped > 0 && !yield(&change{verb: countDropped, name: name, count: q.dropped}) {
				return
			}
		}
	}
}

// size returns about how many bytes a file with this state needs.
func (s *state) size() (n int64) {
	const around = 24 // tags and lengths of a message
	for name, sel := range s.selections {
		for key, seen := range sel.objects {
			n += int64(around + len(name) + len(key.Namespace) + len(key.Name) + len(seen.UID) + len(seen.Version) + len(seen.Digest))
		}
	}
	for _, q := range s.sinks {
		for _, e := range q.entries {
			n += int64(e.n)
		}
	}
	return n
}

// objects returns the objects of a selection, by their keys.
func (s *state) objects(name string) []known {
	sel := s.selections[name]
	if sel == nil {
		return nil
	}
	all := make([]known, 0, len(sel.objects))
	for key, seen := range sel.objects {
		all = append(all, known{key, seen})
	}
	slices.SortFunc(all, func(a, b known) int {
		if c := strings.Compare(a.key.Namespace, b.key.Namespace); c != 0 {
			return c
		}
		return strings.Compare(a.key.Name, b.key.Name)
	})
	return all
}

type known struct {
	key  object.Key
	seen Seen
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
