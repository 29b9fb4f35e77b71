// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakechaos

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/wire"
)

// histories is how many histories a campaign can have: the remainder of a version
// identifies its history.
const histories = 1000

// Seen is an object as a client or the server has it. The zero Seen is none.
type Seen struct {
	UID     types.UID
	Version string
}

// stored is an object at one version. It never changes.
type stored struct {
	object object.Object
	seen   Seen
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

// holds reports whether an object was ever in that state in a history.
func (h *history) holds(key object.Key, s Seen) bool {
	if o := h.base[key]; o != nil && o.seen == s {
		return true
	}
	return slices.ContainsFunc(h.log, func(c change) bool { return c.key == key && c.object.seen == s })
}

// model makes changes through the server and keeps the state that they lead to. The lock of a
// [Server] guards it.
type model struct {
	kind    Kind
	api     *fakeapi.Resource
	random  *rand.Rand
	names   int
	version int64
	objects map[object.Key]*stored
	past    map[int64]*history // by number, the last one is now
	now     int64
	backups []backup
	changes int
}

type backup struct {
	objects map[object.Key]*stored
	api     *fakeapi.Backup
}

func newModel(kind Kind, names int, random *rand.Rand) *model {
	m := &model{kind: kind, names: names, random: random, objects: map[object.Key]*stored{}, past: map[int64]*history{}}
	server := fakeapi.New()
	server.NextVersion, server.BookmarkEvery = m.nextVersion, 10*time.Second
	m.api = server.Serve(kind.Resource)
	m.version = number(m.api.ResourceVersion())
	m.now = m.version % histories
	m.past[m.now] = &history{base: map[object.Key]*stored{}}
	m.backup()
	return m
}

// nextVersion returns the version of the next change, or the first one of a new history.
func (m *model) nextVersion(last uint64) uint64 {
	if v := int64(last); !sameHistory(v, m.now) {
		return uint64((v/histories+1)*histories + m.now%histories)
	}
	return last + histories*uint64(1+m.random.IntN(3))
}

// step makes one change, or two where an object makes room for another of its
// name.
func (m *model) step() error {
	key := object.Key{Namespace: fmt.Sprintf("ns-%d", m.random.IntN(3)), Name: fmt.Sprintf("object-%d", m.random.IntN(max(1, m.names/3)))}
	before := m.objects[key]
	switch dice := m.random.IntN(10); {
	case before == nil:
		return m.happen(wire.Added, key, nil)
	case dice < 2:
		return m.happen(wire.Deleted, key, before)
	case dice < 4:
		return errors.Join(m.happen(wire.Deleted, key, before), m.happen(wire.Added, key, nil))
	default:
		return m.happen(wire.Modified, key, before)
	}
}

func (m *model) happen(kind string, key object.Key, before *stored) error {
	var o object.Object
	if kind == wire.Deleted {
		o = before.object.DeepCopyObject().(object.Object)
		m.api.Remove(key)
	} else {
		o = m.kind.next(before, key, m.random)
		if err := m.api.Put(o); err != nil {
			return err
		}
	}
	m.changes++
	m.version = number(m.api.ResourceVersion())
	o.SetResourceVersion(text(m.version)) // a deletion has a version of its own
	c := change{version: m.version, kind: kind, key: key, object: &stored{object: o, seen: Seen{o.GetUID(), o.GetResourceVersion()}}}
	c.apply(m.objects)
	h := m.past[m.now]
	h.log = append(h.log, c)
	return nil
}

// compact has the server forget all changes except some of the last.
func (m *model) compact() {
	log := m.past[m.now].log
	if keep := m.random.IntN(50); keep < len(log) {
		m.api.Compact(text(log[len(log)-keep-1].version))
	}
}

// backup keeps the state for later. Two are kept.
func (m *model) backup() {
	m.backups = append(m.backups, backup{maps.Clone(m.objects), m.api.Backup()})
	m.backups = m.backups[max(0, len(m.backups)-2):]
}

// restore goes back to a backup: a new history begins.
func (m *model) restore() {
	b := m.backups[m.random.IntN(len(m.backups))]
	m.now++
	m.api.Restore(b.api)
	m.version = number(m.api.ResourceVersion())
	m.objects = maps.Clone(b.objects)
	m.past[m.now] = &history{base: maps.Clone(b.objects)}
}

// settle drops the past that no client will request any more: all hold the present state.
func (m *model) settle() {
	const kept = 100
	h := m.past[m.now]
	if n := len(h.log) - kept; n > 0 {
		for _, c := range h.log[:n] {
			c.apply(h.base)
		}
		m.api.Compact(text(h.log[n-1].version))
		h.log = slices.Clone(h.log[n:])
	}
	m.past = map[int64]*history{m.now: h}
	m.api.Forget()
}

// sameHistory reports whether two versions are of one history.
func sameHistory(a, b int64) bool { return a%histories == b%histories }

// goesBack reports whether a client that saw an object as before may see it as after,
// which is older: because a backup was restored that holds after, and in whose history
// before never was.
func (m *model) goesBack(key object.Key, before, after Seen) bool {
	for _, h := range m.past {
		if h.holds(key, after) && !h.holds(key, before) {
			return true
		}
	}
	return false
}

func text(version int64) string { return strconv.FormatInt(version, 10) }

// number parses a version. It returns -1 for a text that is no version.
func number(text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return v
}
