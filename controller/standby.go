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
	anew    bool     // the handlers are not the first ones: what they see first may be news
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
	f.begun, f.anew = false, false
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
	f.anew = true
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
func (c *Keyed[K]) Enqueue(how workqueue.Add, keys ...K) {
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
