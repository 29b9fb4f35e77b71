// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// relist is a whole state in the making, beside the one that readers see. What did
// not change is marked where it stands and takes no memory twice; only new and changed
// objects are kept until the state is whole.
type relist struct {
	number   uint32 // of this relist: the mark of what has been seen
	restored bool   // a version alone does not say what an object is
	changed  trie[*entry]
	faults   map[object.Key]*fault // objects of the state that cannot be used
	open     bool                  // the state is in the making
}

// changedBy is the owner of the tries of changed entries, which nobody else sees.
const changedBy = 1

// begin implements sink.
func (i *informer) begin(restored bool) {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.relist = relist{number: i.relist.number + 1, restored: restored, faults: map[object.Key]*fault{}, open: true}
}

// add implements sink. A list is what is true, also where a server was set back to
// an older state: only what is the very same is passed over.
func (i *informer) add(f *frame) error {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.counts.heard.Store(time.Now().UnixNano())
	h := &f.head
	i.dropChanged(h.Namespace, h.Name)
	if f.fault != nil {
		i.addFaulty(f)
		return nil
	}
	known := i.store.current.Load().get(h.Namespace, h.Name)
	if known != nil && known.same(h.UID, h.ResourceVersion) && (!i.relist.restored || i.archive.holds(known, f)) {
		known.mark = i.relist.number
		return nil
	}
	n, err := i.archive.entry(f)
	if err != nil {
		return err
	}
	i.relist.changed.put(changedBy, n, h.Namespace, h.Name)
	return nil
}

// omit implements sink: an object of the state in the making is gone again.
func (i *informer) omit(f *frame) {
	i.writing.Lock()
	defer i.writing.Unlock()
	h := &f.head
	i.dropChanged(h.Namespace, h.Name)
	if known := i.store.current.Load().get(h.Namespace, h.Name); known != nil {
		known.mark = 0
	}
}

func (i *informer) dropChanged(namespace, name []byte) {
	if len(i.relist.faults) > 0 {
		delete(i.relist.faults, object.Key{Namespace: string(namespace), Name: string(name)})
	}
	if n, had := i.relist.changed.remove(changedBy, hashOf(namespace, name), namespace, name); had {
		i.archive.drop(n)
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
	i.relist.changed, i.relist.open = trie[*entry]{}, false
}

// whole implements sink: what was not added is gone.
func (i *informer) whole(version object.Version) {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	changed := i.relist.changed
	i.relist.changed, i.relist.open = trie[*entry]{}, false
	i.faults = i.relist.faults

	var removed, told []delta
	edit := i.store.begin()
	i.store.current.Load().all(func(e *entry) bool {
		if e.mark == i.relist.number {
			return true
		}
		namespace, name := bytesOf(e.family.namespace), bytesOf(e.nameText())
		if _, replaced := changed.get(hashOf(namespace, name), namespace, name); !replaced {
			edit.remove(namespace, name)
			i.archive.drop(e)
			removed = append(removed, delta{key: e.key(), old: e, last: e, stale: true})
		}
		return true
	})
	initial := !i.isSynced.Load()
	telling := len(i.handlers) > 0 || len(i.gone) > 0
	changed.all(func(n *entry) bool {
		old := edit.put(n)
		if old != nil {
			i.archive.drop(old)
		}
		if telling {
			told = append(told, delta{key: n.key(), old: old, new: n, initial: initial})
		}
		return true
	})
	i.rewrite(edit)
	// Where a server was set back to an older state, the version goes back with it:
	// what came after is not seen any more, and will not have been when it comes again.
	edit.to(version)
	i.versions.set(version)
	edit.commit(version)
	// Deletions first: a handler that counts never counts two objects where one
	// took the place of the other.
	for _, d := range removed {
		i.tell(d)
	}
	for _, d := range told {
		i.tell(d)
	}
	if initial {
		i.isSynced.Store(true)
		close(i.synced)
		for _, r := range i.handlers {
			r.initialDone()
		}
	}
	i.seen(version)
}
