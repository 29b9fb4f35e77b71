// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/workqueue"
)

// StandBy has the loop follow its informers before it runs: what their events enqueue is kept, and Run
// begins with it. A host calls it once, before Run, while another process leads. end undoes it for a loop that does
// not run after all; after Run has begun it does nothing.
//
// Without StandBy, a loop that takes over maps every object of its informers first. With 50,000 Pods and all
// controllers that took 1.6 s of two processors, and a Pod that was missing was replaced behind it.
//
// Mappings and predicates are called while the loop stands by, and see what they see in a loop that runs.
func (c *Keyed[K]) StandBy() (end func(), err error) { return c.standBy(leastBacklog) }

// standBy keeps so many keys at least before they are sought anew.
func (c *Keyed[K]) standBy(least int) (end func(), err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	kept := newBacklog(least, c.followAnew)
	if !c.follows.backlog.CompareAndSwap(nil, kept) {
		return nil, errors.New("it stands by already")
	}
	end = func() {
		if c.follows.backlog.Load() != nil {
			c.unfollow()
		}
	}
	if err := c.follow(); err != nil {
		end()
		return nil, err
	}
	kept.seek(func() { c.awaitBacklog(kept) })
	return end, nil
}

// following is the part of a loop that follows informers.
type following[K comparable] struct {
	backlog atomic.Pointer[backlog[K]] // nil: the queue has the keys

	mu      sync.Mutex
	begun   bool
	removes []func() // of the handlers
}

// follow adds the handlers, unless they are there.
func (c *Keyed[K]) follow() error {
	f := &c.follows
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun {
		return nil
	}
	if err := c.addHandlers(); err != nil {
		return err
	}
	f.begun = true
	return nil
}

// addHandlers adds all handlers or none. It is called with the lock of c.follows.
func (c *Keyed[K]) addHandlers() error {
	for _, start := range c.sources {
		remove, err := start()
		if err != nil {
			c.removeHandlers()
			return err
		}
		c.follows.removes = append(c.follows.removes, remove)
	}
	return nil
}

// removeHandlers is called with the lock of c.follows.
func (c *Keyed[K]) removeHandlers() {
	for _, remove := range c.follows.removes {
		remove()
	}
	c.follows.removes = nil
	c.heard.forget()
}

// unfollow removes the handlers.
func (c *Keyed[K]) unfollow() {
	f := &c.follows
	kept := f.backlog.Load()
	if kept != nil {
		kept.end(func(*backlogKey[K]) {})
	}
	f.mu.Lock()
	c.removeHandlers()
	f.begun = false
	f.mu.Unlock()
	if kept != nil {
		kept.seeking.Wait()
		f.backlog.Store(nil)
	}
}

// followAnew forgets the keys of objects that have not changed lately, and has other handlers see the whole state again. The
// handlers before stay until these have seen it, because their events say what has changed. It is called by a
// goroutine of its own.
func (c *Keyed[K]) followAnew(kept *backlog[K]) {
	f := &c.follows
	f.mu.Lock()
	if !kept.clear() {
		f.mu.Unlock()
		return // the loop runs, or has ended
	}
	before := f.removes
	f.removes = nil
	c.heard.forget()
	f.begun = c.addHandlers() == nil // otherwise Run tries again, and has the error
	f.mu.Unlock()
	if f.begun {
		c.awaitBacklog(kept)
	}
	for _, remove := range before {
		remove()
	}
}

// mostAwaited is how long the handlers may take to see the state. An informer whose kind is not served, or may not be read, never has one.
const mostAwaited = time.Minute

// awaitBacklog waits until the handlers have seen the whole state, as far as there is one.
func (c *Keyed[K]) awaitBacklog(kept *backlog[K]) {
	defer kept.found()
	limit := time.NewTimer(mostAwaited)
	defer limit.Stop()
	for _, h := range c.heard.all() {
		select {
		case <-h.registration.Synced():
		case <-limit.C:
			return
		case <-kept.ended:
			return
		}
	}
}

// Enqueue adds keys as an event of an informer does: a loop that stands by keeps them until it runs. It is for
// predicates and mappings.
func (c *Keyed[K]) Enqueue(how workqueue.Add, keys ...K) { c.enqueue(how, keys) }

// enqueue adds the keys of an event.
func (c *Keyed[K]) enqueue(how workqueue.Add, keys []K) {
	if kept := c.follows.backlog.Load(); kept != nil && kept.add(&how, keys) {
		return
	}
	c.queue.AddWith(how, keys...)
}

// takeBacklog gives the queue the keys that were kept while the loop stood by. What the events of
// the last minute enqueued comes first: the process that led before has had the time for all others.
func (c *Keyed[K]) takeBacklog() {
	kept := c.follows.backlog.Load()
	if kept == nil {
		return
	}
	now := time.Now()
	kept.end(func(k *backlogKey[K]) {
		if !k.lately(now) {
			k.how.Priority = min(k.how.Priority, workqueue.Low)
		}
		k.how.After = max(0, k.how.After-now.Sub(k.added))
		c.queue.AddWith(k.how, k.key)
	})
	c.follows.backlog.Store(nil)
	kept.seeking.Wait()
}

// lately is how long after a change its keys come before those of objects that did not change. It is several times
// the time in which a lease of the usual length expires.
const lately = time.Minute

// leastBacklog is how many keys are kept at least before they are sought anew.
const leastBacklog = 4096

// backlog has the keys that a loop keeps while it stands by, each once.
//
// In a cluster where objects come and go, keys of objects that are gone add up. A key does not say whether it is one of
// these: it may be that of another object. So when there are twice as many keys as the state had, the loop forgets them and maps
// the state again. A loop that starts without standing by has just these keys.
type backlog[K comparable] struct {
	again   func(*backlog[K]) // maps the state again
	seeking sync.WaitGroup
	ended   chan struct{} // closed by end

	mu    sync.Mutex
	done  bool
	all   []backlogKey[K] // in order of arrival
	at    map[K]int       // in all
	least int             // of most
	most  int             // before the state is mapped again
	seeks bool            // the state is being mapped
}

type backlogKey[K comparable] struct {
	key     K
	how     workqueue.Add
	added   time.Time
	changed time.Time // when an event that was not of the first list came last
}

func (k *backlogKey[K]) lately(now time.Time) bool { return now.Sub(k.changed) <= lately }

func newBacklog[K comparable](least int, again func(*backlog[K])) *backlog[K] {
	return &backlog[K]{again: again, ended: make(chan struct{}), at: map[K]int{}, least: least}
}

// add keeps keys. It reports false when it is too late for that.
func (s *backlog[K]) add(how *workqueue.Add, keys []K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	now := time.Now()
	var changed time.Time
	if how.Priority > workqueue.Low {
		changed = now
	}
	for _, key := range keys {
		i, known := s.at[key]
		if !known {
			s.at[key] = len(s.all)
			s.all = append(s.all, backlogKey[K]{key: key, how: *how, added: now, changed: changed})
			continue
		}
		k := &s.all[i]
		if due := now.Add(how.After); due.Before(k.added.Add(k.how.After)) {
			k.added, k.how.After = now, how.After
		}
		if how.Priority >= k.how.Priority { // the last change explains a run better than the first list
			k.how.Priority, k.how.Cause, k.changed = how.Priority, how.Cause, changed
		}
	}
	if !s.seeks && s.most > 0 && len(s.all) > s.most {
		s.seeks = true
		s.seeking.Go(func() { s.again(s) })
	}
	return true
}

// seek has f, in a goroutine of its own, wait until the state is mapped for the first time.
func (s *backlog[K]) seek(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.seeks = true
		s.seeking.Go(f)
	}
}

// clear forgets the keys of objects that have not changed lately. It reports false when nothing is kept any more.
func (s *backlog[K]) clear() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	before, now := s.all, time.Now()
	s.all, s.at = nil, map[K]int{}
	for i := range before {
		if k := &before[i]; k.lately(now) {
			s.at[k.key] = len(s.all)
			s.all = append(s.all, *k)
		}
	}
	return true
}

// found notes that the keys are those of the state.
func (s *backlog[K]) found() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.seeks = max(2*len(s.all), s.least), false
}

// end calls each with the keys, in order of arrival. None is kept any more. An event that comes meanwhile waits.
func (s *backlog[K]) end(each func(*backlogKey[K])) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.done = true
		close(s.ended)
	}
	for i := range s.all {
		each(&s.all[i])
	}
	s.all, s.at = nil, nil
}

// len returns how many keys are kept.
func (s *backlog[K]) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}
