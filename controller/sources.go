// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// source begins to add keys to a controller's queue, and returns how to end that.
type source func(*Controller) (remove func(), err error)

// For has every object of an informer looked at under its own key. The first For
// names the kind that [Owns] looks for.
func For[T object.Object](informer cache.SharedInformer[T], predicates ...Predicate[T]) Option {
	return func(c *Controller) {
		if c.primary == (cache.Handle{}) {
			c.primary = informer.Handle()
		}
		watch(c, informer, func(e cache.Event[T], add func(object.Key)) { add(e.Key()) }, predicates, c.resyncs, true)
	}
}

// Owns has an object looked at when one that it manages changes: the objects of
// informer whose managing controller is of the kind of the first [For].
func Owns[T object.Object](informer cache.SharedInformer[T], predicates ...Predicate[T]) Option {
	return func(c *Controller) {
		watch(c, informer, func(e cache.Event[T], add func(object.Key)) {
			var before object.Key
			if e.Old.Exists() {
				before = c.owner(e.Old.Meta())
			}
			if !before.IsZero() {
				add(before)
			}
			if e.New.Exists() {
				if now := c.owner(e.New.Meta()); !now.IsZero() && now != before {
					add(now)
				}
			}
		}, predicates, never, false)
	}
}

// owner returns the key of the managing controller if it is of the primary kind. A
// reference does not say whether the kind has namespaces. An owner that is not shown yet
// has its own event to come.
func (c *Controller) owner(m object.Meta) object.Key {
	ref := m.Controller()
	if ref == nil {
		return object.Key{}
	}
	group, kind := c.primary.GroupKind()
	if ref.Kind != kind || groupOf(ref.APIVersion) != group {
		return object.Key{}
	}
	if m.Namespace != "" {
		clusterScoped := object.Key{Name: ref.Name}
		if _, shown := c.primary.Meta(clusterScoped); shown {
			return clusterScoped
		}
	}
	return object.Key{Namespace: m.Namespace, Name: ref.Name}
}

// groupOf returns the group of "group/version", and "" of "version".
func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

// Watches has other objects looked at when one of informer changes: those whose
// keys mapping adds. mapping is called by the goroutine that delivers the events, one at
// a time, and must be quick: indexes of informers are there for it. Where it panics the
// event is lost to the controller, which the log says. Where it does not return, the
// controller alone stands still, as far as this source starts its runs: see the package.
func Watches[T object.Object](informer cache.SharedInformer[T], mapping func(e cache.Event[T], add func(object.Key)), predicates ...Predicate[T]) Option {
	return func(c *Controller) { watch(c, informer, mapping, predicates, never, false) }
}

// Delayed has the keys that a source adds wait for a time first, so that changes which
// follow soon are joined with the first in one run: Delayed(time.Second, Watches(...)). A key
// that waits already keeps its time, and one that is added without delay by another source
// does not wait. Less than 0 is 0.
func Delayed(wait time.Duration, s Option) Option {
	return func(c *Controller) {
		before := c.delay
		c.delay = wait
		s(c)
		c.delay = before
	}
}

func never() time.Duration                   { return 0 }
func (c *Controller) resyncs() time.Duration { return c.resync }

// watch adds a source. resync is asked when the controller starts: options come in any
// order. primary says that its objects are those that the controller reconciles.
func watch[T object.Object](c *Controller, informer cache.SharedInformer[T], mapping func(cache.Event[T], func(object.Key)),
	predicates []Predicate[T], resync func() time.Duration, primary bool) {
	c.knows(informer.Handle())
	group, kind := informer.Handle().GroupKind()
	delay := c.delay
	c.sources = append(c.sources, func(c *Controller) (func(), error) {
		c.heard.mu.Lock() // until the registration is noted
		defer c.heard.mu.Unlock()
		registration, err := informer.AddHandler(func(e cache.Event[T]) {
			if !chosen(c, informer, e, predicates) {
				return
			}
			m := e.Item().Meta()
			how := workqueue.Add{After: delay, Cause: workqueue.Cause{
				Source:  informer.Kind(),
				Verb:    e.Kind.String(),
				Ref:     object.Ref{Group: group, Kind: kind, Key: m.Key, UID: m.UID},
				Version: string(m.Version),
			}}
			// What was there before and what did not change can wait for what
			// did change.
			if e.Initial || e.Kind == cache.Resync {
				how.Priority = workqueue.Low
			}
			defer func() {
				if p := recover(); p != nil {
					c.contain("the mapping of "+informer.Kind(), "the event is lost to it", m.Key.String(), p)
				}
			}()
			mapping(e, func(key object.Key) { c.queue.AddWith(how, key) })
		}, cache.HandlerOptions{Name: c.name, EveryStep: true, Resync: resync(), CaughtUp: func() { c.heard.again(informer.Handle()) }})
		if err != nil {
			return nil, err
		}
		c.heard.of = append(c.heard.of, hearing{registration, informer.Handle(), primary})
		return registration.Remove, nil
	})
}

// heard is the handlers of a controller.
type heard struct {
	mu sync.Mutex
	of []hearing
}

type hearing struct {
	registration *cache.Registration
	informer     cache.Handle
	primary      bool
}

// again is called when the handler of an informer has caught up after changes were merged. A
// run may have read a state of which the controller was not told, since the object has left
// it again: every object that the controller reconciles is looked at, and every object of
// that informer is mapped once more.
func (h *heard) again(informer cache.Handle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.of {
		if of.primary || of.informer == informer {
			of.registration.Resync()
		}
	}
}

// chosen reports whether all predicates choose an event.
func chosen[T object.Object](c *Controller, informer cache.SharedInformer[T], e cache.Event[T], predicates []Predicate[T]) (yes bool) {
	defer func() {
		if p := recover(); p != nil {
			c.contain("a predicate of "+informer.Kind(), "the event is chosen", e.Key().String(), p)
			yes = true
		}
	}()
	for _, p := range predicates {
		if p != nil && !p(e) {
			return false
		}
	}
	return true
}
