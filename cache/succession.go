// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

// Succeeding makes the new informer the successor of another one of the same factory, which selects
// the same objects, and whose users need no more of them than the new one has: their metadata, say.
// When both have listed their kind, all that the users of the other informer have becomes the new
// one's: handlers with the events that wait for them, indexes, waits and references. They miss no
// event, and get none twice. The other informer then stops, and its SharedInformer goes on as a handle
// of the new one.
//
// From then on the items of such a SharedInformer may have the metadata of an object, or the whole:
// see [Item.MetadataOnly]. An informer with a predecessor is not shared.
func Succeeding(h Handle) InformerOption { return func(c *choice) { c.predecessor = h.informer } }

// now returns the informer that serves the users of i: i itself, or its successor.
func (i *informer) now() *informer {
	for {
		next := i.next.Load()
		if next == nil {
			return i
		}
		i = next
	}
}

// state returns the newest state. An informer with a successor drops its state, so the successor is
// looked for once more after the state was read.
func (i *informer) state() *state {
	for {
		i = i.now()
		s := i.store.current.Load()
		if i.next.Load() == nil {
			return s
		}
	}
}

// lock locks mu of the informer that serves the users of i, and returns that informer.
func (i *informer) lock() *informer {
	for {
		i = i.now()
		i.mu.Lock()
		if i.next.Load() == nil {
			return i
		}
		i.mu.Unlock()
	}
}

// addIndex adds an index to the informer that serves the users of i.
func (i *informer) addIndex(id any, f indexFunc) {
	x := &addedIndex{values: f}
	i.onStores(func(s *store) { s.addIndex(id, x) })
}

// removeIndex removes an index from the informer that serves the users of i.
func (i *informer) removeIndex(id any) {
	i.onStores(func(s *store) { s.removeIndex(id) })
}

// onStores calls a function with the store of the informer that serves the users of i, and with those of the
// successors that take over meanwhile.
func (i *informer) onStores(do func(*store)) {
	for {
		at := i.now()
		do(at.store)
		if at.now() == at {
			return
		}
	}
}

// How a successor waits for the moment at which it has the state of its predecessor.
const (
	// handWait is how long the predecessor reads nothing, so that the successor gets as far.
	handWait = 50 * time.Millisecond
	// handPause and handPauseMost are the pauses between two tries.
	handPause     = 5 * time.Millisecond
	handPauseMost = time.Second
	// handTries is how often the two must have the same state. Then the users get the
	// difference between the two states, as after a list.
	handTries = 100
)

// succeed begins a succession. mu is held.
func (f *Factory) succeed(from, to *informer) {
	from = from.now()
	switch {
	case f.informers[from.key] != from || f.stopping:
		return // it has no users, or stops
	case f.running == nil:
		f.hand(from, to) // neither has a state
		return
	}
	ctx := f.running
	f.tasks.Go(func() { f.awaitSuccession(ctx, from, to) })
}

// awaitSuccession ends when a predecessor has handed its users on, or when one of the two has stopped.
func (f *Factory) awaitSuccession(ctx context.Context, from, to *informer) {
	for _, synced := range []<-chan struct{}{to.synced, from.synced} {
		select {
		case <-synced:
		case <-from.ended:
			return
		case <-to.ended:
			return
		}
	}
	pause := handPause
	for try := 1; ; try++ {
		to.store.addIndexesOf(from.store) // here, as it may take long
		if f.tryToHand(from, to, try > handTries) {
			return
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-from.ended:
		case <-to.ended:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		pause = min(2*pause, handPauseMost)
	}
}

// tryToHand hands the users of an informer on if its successor has the same state. differing allows
// any state of the successor that is newer. It reports whether nothing is left to do.
func (f *Factory) tryToHand(from, to *informer, differing bool) bool {
	from.writing.Lock()
	defer from.writing.Unlock()
	from.flushLocked()
	to.awaitVersion(from.store.current.Load().version, handWait)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.informers[from.key] != from || f.informers[to.key] != to {
		return true
	}
	// The successor may hand on its own users at this time: it holds its writing then, and waits for mu.
	if !to.writing.TryLock() {
		return false
	}
	defer to.writing.Unlock()
	to.flushLocked()
	was, is := from.store.current.Load(), to.store.current.Load()
	if !was.sameAs(is) && (!differing || !is.version.AtLeast(was.version)) {
		return false
	}
	f.hand(from, to)
	return true
}

// awaitVersion waits until an informer has seen a version, for some time at most.
func (i *informer) awaitVersion(version object.Version, most time.Duration) {
	seen, giveUp := i.versions.wait(version)
	defer giveUp()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-seen:
	case <-i.ended:
	case <-timer.C:
	}
}

// sameAs reports whether two stores have the same states of the same objects.
func (s *state) sameAs(other *state) bool {
	if s.len != other.len {
		return false
	}
	same := true
	s.all(func(e *entry) bool {
		same = e.sameState(other.get(e.names()))
		return same
	})
	return same
}

func (e *entry) sameState(other *entry) bool {
	return other != nil && e.at() == other.at() && e.sameObject(other)
}

// hand makes all users of an informer those of its successor. The factory's mu is held, and writing
// of both if they run.
func (f *Factory) hand(from, to *informer) {
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	from.notify(changesBetween(from.store.current.Load(), to.store.current.Load())...)
	to.handlers = append(to.handlers, from.handlers...)
	for key, waits := range from.gone {
		to.gone[key] = append(to.gone[key], waits...)
	}
	from.handlers = nil
	clear(from.gone)
	to.taken = append(to.taken, from)
	from.store.mu.Lock() // an index that is being added is in both stores, or its caller sees the successor
	to.store.addIndexesLocked(from.store)
	from.next.Store(to)
	from.store.mu.Unlock()
	to.references += from.references
	from.references = 0
	delete(f.informers, from.key)
	if from.stopReading != nil {
		from.stopReading()
	}
}

// changesBetween returns what leads from one state to a newer one of another store.
func changesBetween(was, is *state) []delta {
	var all []delta
	was.all(func(e *entry) bool {
		if is.get(e.names()) == nil {
			all = append(all, delta{key: e.key(), old: e, last: e, stale: true})
		}
		return true
	})
	is.all(func(e *entry) bool {
		if old := was.get(e.names()); !e.sameState(old) {
			all = append(all, delta{key: e.key(), old: old, new: e})
		}
		return true
	})
	return all
}

// addIndexesOf adds the indexes of another store.
func (s *store) addIndexesOf(other *store) {
	other.mu.Lock()
	numbers, added := other.current.Load().numbers, slices.Clone(other.added)
	other.mu.Unlock()
	for id, number := range numbers {
		s.addIndex(id, added[number])
	}
}

// addIndexesLocked is addIndexesOf with the lock of the other store held. Indexes that were removed since addIndexesOf
// are removed here too.
func (s *store) addIndexesLocked(other *store) {
	for _, id := range s.removedMeanwhile() {
		s.removeIndex(id)
	}
	for id, number := range other.current.Load().numbers {
		s.addIndex(id, other.added[number])
	}
}

// removedMeanwhile returns the identities of indexes that were removed from the store before this one. Its lock is held.
func (s *store) removedMeanwhile() (ids []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, number := range s.current.Load().numbers {
		if s.added[number].removed {
			ids = append(ids, id)
		}
	}
	return ids
}

// retire waits for the end of an informer that has handed its users on, and frees what it has read. The
// goroutines of handlers that it has started go on.
func (i *informer) retire(ctx context.Context) {
	i.writing.Lock()
	i.content.stop()
	i.store.mu.Lock()
	i.store.current.Store(&state{indexes: make([]groups, len(i.store.added)), numbers: i.store.current.Load().numbers})
	i.store.mu.Unlock()
	i.archive.changing.stop()
	i.archive, i.relist = newArchive(i.content), relist{number: i.relist.number}
	i.mu.Lock()
	clear(i.faults)
	i.mu.Unlock()
	i.writing.Unlock()
	<-ctx.Done()
}

// setSynced lets the users read, those of predecessors that have never run included. mu is held.
func (i *informer) setSynced() {
	i.isSynced.Store(true)
	close(i.synced)
	for _, from := range i.taken {
		if !from.isSynced.Load() {
			from.setSynced()
		}
	}
}

// end stops an informer that has no users any more, and those that have handed their users on to it.
func (i *informer) end() {
	if i.stop == nil {
		i.neverRun()
		return
	}
	i.stop()
	for _, from := range i.predecessors() {
		from.end()
	}
}

// predecessors returns the informers that have handed their users on to i.
func (i *informer) predecessors() []*informer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.taken)
}

// endIdle ends the predecessors that have never run, with their successor.
func (i *informer) endIdle() {
	for _, from := range i.predecessors() {
		if from.stop == nil {
			from.neverRun()
		}
	}
}
