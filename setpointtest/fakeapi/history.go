// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// state is an object at one version. It never changes, except its encodings, which are
// made when a client first reads them.
type state struct {
	object  *unstructured.Unstructured
	version uint64

	mu      sync.Mutex
	encoded map[form][]byte
}

// change is one step of the history.
type change struct {
	version  uint64
	resource *Resource
	kind     string // of the watch event
	key      object.Key
	before   *state    // nil for a new object
	after    *state    // of a deletion: the last state, at the version of the deletion
	shown    time.Time // watches do not send it earlier
}

// history is what happened. Versions are of one sequence for all resources.
type history struct {
	version   uint64
	compacted uint64   // changes up to here can no longer be watched
	log       []change // in order; from compacted on, and what open watches still need
	restored  bool     // a backup was restored: versions that are not in the log are of another history
}

// newHistory begins with version 1: "0" means any version in a request.
func newHistory() history { return history{version: 1, compacted: 1} }

// after returns the changes after a version.
func (h *history) after(version uint64) []change {
	first, _ := slices.BinarySearchFunc(h.log, version, func(c change, v uint64) int {
		if c.version <= v {
			return -1
		}
		return 1
	})
	return h.log[first:]
}

// knows reports whether the server can tell what came after a version.
func (h *history) knows(version uint64) bool {
	if version < h.compacted {
		return false
	}
	if !h.restored || version == h.compacted || version == h.version {
		return true
	}
	_, found := slices.BinarySearchFunc(h.log, version, func(c change, v uint64) int {
		return int(int64(c.version) - int64(v))
	})
	return found
}

// commit writes the next state of an object, or its end. mu is held.
func (s *Server) commit(r *Resource, kind string, o *unstructured.Unstructured) *state {
	if s.NextVersion != nil {
		s.version = s.NextVersion(s.version)
	} else {
		s.version++
	}
	o.SetResourceVersion(strconv.FormatUint(s.version, 10))
	key := object.KeyOf(o)
	next := &state{object: o, version: s.version}
	s.log = append(s.log, change{version: s.version, resource: r, kind: kind, key: key, before: r.objects[key], after: next, shown: s.shown(r)})
	if kind == wire.Deleted {
		delete(r.objects, key)
	} else {
		r.objects[key] = next
	}
	s.wake()
	return next
}

// at returns the objects of a resource at a version that is known. mu is held.
func (r *Resource) at(version uint64) map[object.Key]*state {
	if version >= r.version {
		return r.objects
	}
	objects := maps.Clone(r.objects)
	log := r.history.after(version)
	for _, c := range slices.Backward(log) {
		switch {
		case c.resource != r:
		case c.before == nil:
			delete(objects, c.key)
		default:
			objects[c.key] = c.before
		}
	}
	return objects
}

// ResourceVersion returns the newest resourceVersion.
func (s *Server) ResourceVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatUint(s.version, 10)
}

// Compact makes the server forget the changes up to a resourceVersion, or all up to now
// for "". Lists and watches that begin earlier get 410 Gone. Open watches go on.
func (s *Server) Compact(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, err := strconv.ParseUint(version, 10, 64)
	if err != nil || to > s.version {
		to = s.version
	}
	s.compacted = max(s.compacted, to)
	needed := s.compacted
	for w := range s.watches {
		needed = min(needed, w.stands)
	}
	s.log = slices.Clone(s.history.after(needed))
}

// Backup is the state of a server at one time.
type Backup struct {
	version uint64
	objects map[*Resource]map[object.Key]*state
}

// Backup returns the state of the server, for [Server.Restore].
func (s *Server) Backup() *Backup {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &Backup{version: s.version, objects: map[*Resource]map[object.Key]*state{}}
	for _, r := range s.resources {
		b.objects[r] = maps.Clone(r.objects)
	}
	return b
}

// Restore takes the server back to a backup of its own, as when its etcd was restored. All
// watches end. Versions go on from that of the backup, so those of the lost history may
// come again: give NextVersion a sequence that does not repeat itself to have the server
// answer 410 Gone to them.
func (s *Server) Restore(b *Backup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		r.objects = maps.Clone(b.objects[r])
		if r.objects == nil {
			r.objects = map[object.Key]*state{}
		}
	}
	if s.version = b.version + 1; s.NextVersion != nil {
		s.version = s.NextVersion(b.version)
	}
	s.compacted, s.log, s.restored = s.version, nil, true
	for w := range s.watches {
		w.ended = true
	}
	s.wake()
}
