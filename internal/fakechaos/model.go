// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// histories is how many histories a campaign can have: the remainder of a version
// says which one made it.
const histories = 1000

// Seen is an object as somebody sees it. The zero Seen is none.
type Seen struct {
	UID     types.UID
	Version string
}

// stored is an object at one version. It never changes, but for what it remembers
// of its encodings, under the model's lock.
type stored struct {
	object  object.Object
	seen    Seen
	encoded [2][]byte
	events  [2][]byte
}

func (s *stored) raw(e wire.Encoding) []byte {
	if s.encoded[e] == nil {
		s.encoded[e] = encode(s.object, e)
	}
	return s.encoded[e]
}

// change is one step of a history.
type change struct {
	version int64
	kind    string // of the watch event
	key     object.Key
	object  *stored // as it is, or last was
}

// history is what happened since a server began, or was restored.
type history struct {
	base map[object.Key]*stored // before the first change
	log  []change
}

// after returns the changes that come after a version.
func (h *history) after(version int64) []change {
	first, _ := slices.BinarySearchFunc(h.log, version+1, func(c change, v int64) int { return int(c.version - v) })
	return h.log[first:]
}

// at returns the state at a version.
func (h *history) at(version int64) map[object.Key]*stored {
	state := maps.Clone(h.base)
	for _, c := range h.log[:len(h.log)-len(h.after(version))] {
		c.apply(state)
	}
	return state
}

func (c *change) apply(state map[object.Key]*stored) {
	if c.kind == wire.Deleted {
		delete(state, c.key)
	} else {
		state[c.key] = c.object
	}
}

// holds reports whether an object was ever seen so in a history.
func (h *history) holds(key object.Key, s Seen) bool {
	if o := h.base[key]; o != nil && o.seen == s {
		return true
	}
	return slices.ContainsFunc(h.log, func(c change) bool { return c.key == key && c.object.seen == s })
}

// model is what is true. It is guarded by the server's lock.
type model struct {
	kind    Kind
	random  *rand.Rand
	names   int
	version int64
	objects map[object.Key]*stored
	past    map[int64]*history // by number, the last one is now
	now     int64
	// compacted is the version up to which changes can no longer be asked for.
	compacted int64
	settled   int64 // the version up to which the log has been dropped
	backups   []backup

	changes int
}

type backup struct {
	version int64
	objects map[object.Key]*stored
}

func newModel(kind Kind, names int, random *rand.Rand) *model {
	m := &model{kind: kind, names: names, random: random, version: histories, objects: map[object.Key]*stored{}, past: map[int64]*history{}}
	m.past[0] = &history{base: map[object.Key]*stored{}}
	m.compacted = m.version
	m.backup()
	return m
}

// step makes one change, or two where an object makes room for another of its
// name.
func (m *model) step() {
	key := object.Key{Namespace: fmt.Sprintf("ns-%d", m.random.IntN(3)), Name: fmt.Sprintf("object-%d", m.random.IntN(max(1, m.names/3)))}
	before := m.objects[key]
	switch dice := m.random.IntN(10); {
	case before == nil:
		m.happen(wire.Added, key, nil)
	case dice < 2:
		m.happen(wire.Deleted, key, before)
	case dice < 4:
		m.happen(wire.Deleted, key, before)
		m.happen(wire.Added, key, nil)
	default:
		m.happen(wire.Modified, key, before)
	}
}

func (m *model) happen(kind string, key object.Key, before *stored) {
	m.changes++
	m.version += histories * int64(1+m.random.IntN(3))
	c := change{version: m.version, kind: kind, key: key}
	var o object.Object
	if kind == wire.Deleted {
		// A server sends the last state, at the version of the deletion.
		o = before.object.DeepCopyObject().(object.Object)
		o.SetResourceVersion(text(m.version))
	} else {
		o = m.kind.next(before, key, text(m.version), m.random)
	}
	c.object = &stored{object: o, seen: Seen{o.GetUID(), o.GetResourceVersion()}}
	c.apply(m.objects)
	h := m.past[m.now]
	h.log = append(h.log, c)
}

// compact forgets all changes but some of the last, for who watches.
func (m *model) compact() {
	log := m.past[m.now].log
	if keep := m.random.IntN(50); keep < len(log) {
		m.compacted = max(m.compacted, log[len(log)-keep-1].version)
	}
}

// backup keeps the state for later. Two are kept.
func (m *model) backup() {
	m.backups = append(m.backups, backup{m.version, maps.Clone(m.objects)})
	m.backups = m.backups[max(0, len(m.backups)-2):]
}

// restore goes back to a backup: a new history begins.
func (m *model) restore() {
	b := m.backups[m.random.IntN(len(m.backups))]
	m.now++
	m.objects = maps.Clone(b.objects)
	m.version = (b.version/histories+1)*histories + m.now%histories
	m.compacted, m.settled = m.version, m.version
	m.past[m.now] = &history{base: maps.Clone(b.objects)}
}

// settle drops the past that nobody will ask for any more: all clients hold what
// is true.
func (m *model) settle() {
	const kept = 100
	h := m.past[m.now]
	if n := len(h.log) - kept; n > 0 {
		for _, c := range h.log[:n] {
			c.apply(h.base)
		}
		m.settled = h.log[n-1].version
		m.compacted = max(m.compacted, m.settled)
		h.log = slices.Clone(h.log[n:])
	}
	m.past = map[int64]*history{m.now: h}
}

// knows reports whether a version is of the history that is true now.
func (m *model) knows(version int64) bool { return version%histories == m.now%histories }

// goesBack reports whether somebody who saw an object as before may see it as
// after, which is older: because a backup was restored that holds after, and in
// whose history before never was.
func (m *model) goesBack(key object.Key, before, after Seen) bool {
	for _, h := range m.past {
		if h.holds(key, after) && !h.holds(key, before) {
			return true
		}
	}
	return false
}

func text(version int64) string { return strconv.FormatInt(version, 10) }

// number reads a version; what is none is none that this server made.
func number(text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return v
}
