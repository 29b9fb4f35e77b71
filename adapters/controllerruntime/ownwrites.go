// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// ownWrites are the writes of a client that informers may not have seen. An informer that is made after
// a write lists after it, so it has nothing to see.
type ownWrites struct {
	live    crclient.Reader              // reads from the server
	current func() map[cache.Handle]bool // returns the informers that there are

	mu     sync.Mutex
	unseen map[cache.Handle]map[object.Key]unseen
	count  int // of all informers
	limit  int // of count, at which those that have been seen are removed
	sent   map[*sent]bool
	number uint64 // of the last note
}

// leastLimit is the smallest limit of ownWrites.
const leastLimit = 128

// unseen is what an informer has to see of an object. It is seen once the informer has reached the
// version, if there is one, and then shows the object no more, if it ends or leaves.
type unseen struct {
	gvk     schema.GroupVersionKind
	version object.Version // "" is none
	uid     types.UID      // of the object; "" is any
	newest  object.Version // the newest version that the object is known to have had
	ends    bool           // the object has been deleted; its UID does not come back
	byName  bool           // the deletion had no UID, so the deleted object may be newer than that of uid
	removed bool           // the object is not there any more, and not only being deleted
	leaves  bool           // the informer does not select the newest version
	open    bool           // the outcome of the write is not known
	stays   bool           // the informer selects the object, for certain
	number  uint64         // of the last note
}

func newOwnWrites(live crclient.Reader, current func() map[cache.Handle]bool) *ownWrites {
	return &ownWrites{
		live: live, current: current, limit: leastLimit,
		unseen: map[cache.Handle]map[object.Key]unseen{}, sent: map[*sent]bool{},
	}
}

// sent is a write that has not returned. Writes that overlap get their answers in any order, so a write keeps what the writes
// say that return before it does.
type sent struct {
	kind   schema.GroupKind
	key    object.Key // an empty name is one that the server makes, or all; an empty namespace is all
	others []note

	// places are where a deletion of all notes the writes that overlapped with it; nil for other writes.
	places []place
}

// note is what an informer has to see of an object.
type note struct {
	place
	unseen unseen
}

// send adds a write that is about to be sent.
func (w *ownWrites) send(kind schema.GroupKind, key object.Key) *sent {
	s := &sent{kind: kind, key: key}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[s] = true
	return s
}

// forget removes a write that has returned. Nothing is noted of a write for which answered was not called.
func (w *ownWrites) forget(s *sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sent, s)
}

// answered notes what informers have to see of a write that has returned. outcome is what the answer says for every informer.
func (w *ownWrites) answered(s *sent, key object.Key, outcome unseen, notes []note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sent, s)
	for _, other := range s.others {
		if !unclear(other.unseen, outcome) {
			continue
		}
		for _, p := range s.places {
			at := place{p.informer, object.Key{Namespace: p.key.Namespace, Name: other.key.Name}}
			notes = append(notes, note{at, unseen{gvk: outcome.gvk, open: true}})
		}
		for i, n := range notes {
			notes[i].unseen.open = n.unseen.open || s.places == nil && mayBeSame(other.key, n.key)
		}
	}
	for other := range w.sent {
		if other.kind == s.kind && mayBeSame(other.key, key) {
			other.others = append(other.others, note{place{key: key}, outcome})
		}
	}
	for _, n := range notes {
		w.note(n)
	}
}

// mayBeSame reports whether two keys may be of one object. An empty name or namespace may be any.
func mayBeSame(a, b object.Key) bool {
	return (a.Name == b.Name || a.Name == "" || b.Name == "") &&
		(a.Namespace == b.Namespace || a.Namespace == "" || b.Namespace == "")
}

// unclear reports whether an object may or may not exist after two writes that overlapped. A deletion by name may have deleted
// an object that the client did not know yet, such as one that the other write has created.
func unclear(one, other unseen) bool {
	if one.open || other.open {
		return true
	}
	if one.ends == other.ends {
		return false
	}
	deletion, write := one, other
	if other.ends {
		deletion, write = other, one
	}
	same := deletion.uid != "" && deletion.uid == write.uid
	return deletion.byName && !same && write.newest.AtLeast(deletion.newest)
}

// note adds what an informer has to see. mu is held.
func (w *ownWrites) note(n note) {
	next := n.unseen
	if next.ends && next.uid == "" && !next.open {
		return // an object that neither the cache nor the client has seen
	}
	before, known := w.unseen[n.informer][n.key]
	if known {
		next = before.with(next)
	} else {
		w.count++
	}
	w.number++
	next.number = w.number
	if w.unseen[n.informer] == nil {
		w.unseen[n.informer] = map[object.Key]unseen{}
	}
	w.unseen[n.informer][n.key] = next
	if w.count > w.limit {
		w.prune()
	}
}

// with returns what is to be seen of two writes. The versions tell their order at the server: the answers may have come in
// another one. An informer shows the states of an object in order, so what the later write says of the object holds.
func (u unseen) with(next unseen) unseen {
	earlier, later := u, next
	if next.uid == "" || u.uid != "" && u.newest.Compare(next.newest) > 0 {
		earlier, later = next, u
	}
	if earlier.version.AtLeast(later.version) {
		later.version = earlier.version
	}
	later.open = u.open || next.open
	switch {
	case earlier.uid == "": // the outcome of that write is not known
	case earlier.uid == later.uid:
		later.ends = later.ends || earlier.ends
		later.removed = later.removed || earlier.removed
		later.leaves = later.leaves || earlier.leaves && earlier.newest == later.newest
	case earlier.newest == "" && (earlier.ends || later.ends): // which of the two objects is newer is not known
		later.open = true
	}
	return later
}

// prune removes what informers have seen, and informers that there are no more. mu is held.
func (w *ownWrites) prune() {
	current := w.current()
	for h, objects := range w.unseen {
		for key, u := range objects {
			if !current[h] || u.isSeen(h, key) {
				delete(objects, key)
				w.count--
			}
		}
		if len(objects) == 0 {
			delete(w.unseen, h)
		}
	}
	w.limit = max(leastLimit, 2*w.count)
}

// of returns what an informer has to see of some objects.
func (w *ownWrites) of(h cache.Handle, matches func(object.Key) bool) map[object.Key]unseen {
	w.mu.Lock()
	defer w.mu.Unlock()
	var some map[object.Key]unseen
	for key, u := range w.unseen[h] {
		if matches(key) {
			if some == nil {
				some = map[object.Key]unseen{}
			}
			some[key] = u
		}
	}
	return some
}

// one returns what an informer has to see of an object.
func (w *ownWrites) one(h cache.Handle, key object.Key) (unseen, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, ok := w.unseen[h][key]
	return u, ok
}

// seen removes what an informer has seen, unless there has been a further write.
func (w *ownWrites) seen(h cache.Handle, key object.Key, u unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now, ok := w.unseen[h][key]; !ok || now.number != u.number {
		return
	}
	delete(w.unseen[h], key)
	w.count--
	if len(w.unseen[h]) == 0 {
		delete(w.unseen, h)
	}
}

// handles returns the informers of a cache.
func (c *informerCache) handles() map[cache.Handle]bool {
	all := map[cache.Handle]bool{}
	for _, v := range c.views() {
		for _, p := range v.store.parts {
			all[p.informer.Handle()] = true
		}
	}
	return all
}

// place is where a cache has an object.
type place struct {
	informer cache.Handle
	key      object.Key
}

// places returns where a cache may have an object, in all versions of its kind.
func (c *informerCache) places(kind schema.GroupKind, key object.Key) []place {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []place
	for gvk, k := range c.kinds {
		if gvk.GroupKind() != kind {
			continue
		}
		if !k.resource.Namespaced {
			key.Namespace = ""
		}
		known := map[*store]bool{}
		for _, v := range k.views {
			if p := v.store.partOf(key.Namespace); p != nil && !known[v.store] {
				known[v.store] = true
				all = append(all, place{p.informer.Handle(), key})
			}
		}
	}
	return all
}

func inNamespace(namespace string) func(object.Key) bool {
	return func(key object.Key) bool { return namespace == "" || key.Namespace == namespace }
}
