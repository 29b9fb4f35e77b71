// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// relist is a whole state that is being read, beside the one that readers see. An object
// that has not changed is marked in the store and takes no second place in memory; relist
// keeps new and changed objects only.
type relist struct {
	number   uint16                // of this relist: the mark of the objects that are in the state; 0 is none
	restored bool                  // two states of an object may have the same version
	changed  *edit                 // of a staged state; nil: none is being read
	faults   map[object.Key]*fault // objects of the state that cannot be used
	open     bool                  // the state is not whole yet
}

// begin implements sink.
func (i *informer) begin(restored bool) {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.flushLocked()
	if i.relist.number == ofRelist { // the numbers begin anew, so no entry may have one
		i.store.current.Load().all(func(e *entry) bool { e.mark(0); return true })
	}
	i.relist = relist{
		number: i.relist.number%ofRelist + 1, restored: restored, changed: i.store.stage(), faults: map[object.Key]*fault{}, open: true,
	}
}

// add implements sink. The list is right also after the server was restored to an older
// state, so add skips an object only if the store has the same state of it.
func (i *informer) add(f *frame) error {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.counts.heard.Store(time.Now().UnixNano())
	h := &f.head
	i.dropFault(h.Namespace, h.Name)
	if f.fault != nil {
		i.dropChanged(h.Namespace, h.Name)
		i.addFaulty(f)
		return nil
	}
	n, err := i.changed(f)
	if n == nil {
		i.dropChanged(h.Namespace, h.Name)
		return err
	}
	if before := i.relist.changed.put(n); before != nil {
		i.archive.drop(before)
	}
	return nil
}

// changed returns an entry of an object of the state; nil if the store has the object as it is.
func (i *informer) changed(f *frame) (*entry, error) {
	h := &f.head
	known := i.store.current.Load().get(h.Namespace, h.Name)
	if known != nil && known.same(h.UID, h.ResourceVersion) && (!i.relist.restored || i.archive.holds(known, f)) {
		known.mark(i.relist.number)
		return nil, nil
	}
	return i.archive.entry(f)
}

// omit implements sink: an object was deleted after the state began.
func (i *informer) omit(f *frame) {
	i.writing.Lock()
	defer i.writing.Unlock()
	h := &f.head
	i.dropFault(h.Namespace, h.Name)
	i.dropChanged(h.Namespace, h.Name)
	if known := i.store.current.Load().get(h.Namespace, h.Name); known != nil {
		known.mark(0)
	}
}

func (i *informer) dropFault(namespace, name []byte) {
	if len(i.relist.faults) > 0 {
		delete(i.relist.faults, object.Key{Namespace: string(namespace), Name: string(name)})
	}
}

func (i *informer) dropChanged(namespace, name []byte) {
	if i.relist.changed.get(namespace, name) != nil {
		i.archive.drop(i.relist.changed.remove(namespace, name))
	}
}

// abandon implements sink.
func (i *informer) abandon() {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.relist.changed.all(func(e *entry) bool {
		i.archive.drop(e)
		return true
	})
	i.relist.changed, i.relist.open = nil, false
}

// whole implements sink: objects that were not added no longer exist.
func (i *informer) whole(version object.Version) {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	changed := i.relist.changed
	i.relist.changed, i.relist.open = nil, false
	i.faults = i.relist.faults

	var removed, stored []delta
	var left []*entry // states that the store does not have any more
	edit := i.store.begin()
	i.store.current.Load().all(func(e *entry) bool {
		if e.marked() == i.relist.number {
			return true
		}
		namespace, name := bytesOf(e.family.namespace), bytesOf(e.nameText())
		if changed.get(namespace, name) == nil {
			edit.remove(namespace, name)
			i.archive.drop(e)
			left = append(left, e)
			removed = append(removed, delta{key: e.key(), old: e, last: e, stale: true})
		}
		return true
	})
	initial := !i.isSynced.Load()
	notifies := len(i.handlers) > 0 || len(i.gone) > 0
	if notifies {
		stored = make([]delta, 0, changed.len)
	}
	adopted := edit.adopt(changed)
	changed.all(func(n *entry) bool {
		var old *entry // in a store that was empty there is none
		if !adopted {
			old = edit.put(n)
		}
		if old != nil {
			i.archive.drop(old)
			left = append(left, old)
		}
		if notifies {
			stored = append(stored, delta{key: n.key(), old: old, new: n, initial: initial})
		}
		return true
	})
	i.rewrite(edit)
	// After a restore the version goes back with the server. Later versions no longer count
	// as seen.
	edit.to(version)
	i.versions.set(version)
	edit.commit(version)
	for _, e := range left {
		i.content.release(e)
	}
	// Deletions come first: a handler that counts objects never counts two where one has
	// replaced the other.
	i.notify(removed...)
	i.notify(stored...)
	if initial {
		i.setSynced()
		for _, r := range i.handlers {
			r.initialDone()
		}
	}
	i.seen(version)
}
