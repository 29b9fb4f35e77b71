// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// put implements sink. It ignores a state that the store has already: a watch that resumes
// repeats changes.
func (i *informer) put(f *frame, version object.Version) error {
	i.awaitRoom()
	i.writing.Lock()
	defer i.writing.Unlock()
	i.counts.event()
	if f.fault != nil {
		i.putFaulty(f, version)
		return nil
	}
	if known := i.store.current.Load().get(f.head.Namespace, f.head.Name); known != nil && known.same(f.head.UID, f.head.ResourceVersion) {
		i.reach(version)
		return nil
	}
	n, err := i.archive.entry(f)
	if err != nil {
		return err
	}
	i.keep(n, version)
	return nil
}

// keep stores an entry and delivers the change.
func (i *informer) keep(n *entry, version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	edit := i.store.begin()
	old := edit.put(n)
	if old != nil {
		i.archive.drop(old)
	}
	i.rewrite(edit)
	edit.commit(version)
	i.content.release(old)
	namespace, name := n.names()
	i.setFault(namespace, name, nil)
	i.notify(delta{key: n.key(), old: old, new: n})
	i.seen(version)
}

// remove implements sink. f is the object's last state. It ignores an object that is gone
// already.
func (i *informer) remove(f *frame, version object.Version) error {
	i.awaitRoom()
	i.writing.Lock()
	defer i.writing.Unlock()
	i.counts.event()
	known := i.store.current.Load().get(f.head.Namespace, f.head.Name)
	if known == nil || !known.identified(f.head.UID) && !version.AtLeast(known.at()) {
		i.reach(version)
		i.mu.Lock()
		defer i.mu.Unlock()
		i.setFault(f.head.Namespace, f.head.Name, nil)
		return nil
	}
	last := known // if the last state cannot be used
	if f.fault == nil {
		var err error
		if last, err = i.archive.entry(f); err != nil {
			return err
		}
		i.archive.drop(last) // it is delivered, and not kept
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	edit := i.store.begin()
	old := edit.remove(f.head.Namespace, f.head.Name)
	edit.commit(version)
	i.content.release(old)
	i.archive.drop(old)
	i.setFault(f.head.Namespace, f.head.Name, nil)
	i.notify(delta{key: last.key(), old: old, last: last, stale: f.fault != nil})
	i.seen(version)
	return nil
}

// advance implements sink.
func (i *informer) advance(version object.Version) {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	edit := i.store.begin()
	edit.to(version)
	edit.commit(version)
	i.seen(version)
}

// reach moves the store to a version without a change of its objects.
func (i *informer) reach(version object.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.store.begin().commit(version)
	i.seen(version)
}

// seen is called with mu held, after the store has moved to a version.
func (i *informer) seen(version object.Version) {
	i.counts.heard.Store(time.Now().UnixNano())
	i.counts.raw.Store(int64(i.archive.raw))
	i.counts.stored.Store(int64(i.archive.stored))
	i.reached(version)
}

// reached ends the waits for versions, those of predecessors included.
func (i *informer) reached(version object.Version) {
	i.versions.advance(version)
	for _, from := range i.taken {
		from.reached(version)
	}
}

// rewrite compresses the entries without a dictionary again once there is one.
func (i *informer) rewrite(edit *edit) {
	for e := range i.archive.trainers {
		l := &i.archive.trainers[e]
		if l.before == nil {
			continue
		}
		var plain []*entry
		edit.all(func(e *entry) bool {
			if e.form == l.before {
				plain = append(plain, e)
			}
			return true
		})
		for _, e := range plain {
			edit.rewrite(e, i.archive.rewrite(e, i.archive.forms[e.form.encoding]))
		}
		l.before = nil
	}
}
