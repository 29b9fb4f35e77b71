// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// For enqueues every object of an informer under its own key. The first For names the kind
// whose objects [Owns] takes for owners.
func For[T object.Object](informer cache.SharedInformer[T], predicates ...Predicate[T]) Option {
	return over("For", func(c *Controller) {
		if c.primary == (cache.Handle{}) {
			c.primary = informer.Handle()
		}
		watch(c, informer, SameKey, predicates, true)
	})
}

// SameKey maps an object to the key that it has itself: Endpoints to their Service, say.
func SameKey[T object.Object](item cache.Item[T], add func(object.Key)) { add(item.Key()) }

// Owns enqueues the owner of an object when the object changes, and when the owner does not
// manage it any more. The owner is the managing controller of an object of informer, if it is
// of the kind of the first [For].
func Owns[T object.Object](informer cache.SharedInformer[T], predicates ...Predicate[T]) Option {
	return over("Owns", func(c *Controller) {
		c.owns = true
		watch(c, informer, func(item cache.Item[T], add func(object.Key)) {
			if owner := c.owner(item.Meta()); !owner.IsZero() {
				add(owner)
			}
		}, predicates, false)
	})
}

// owner returns the key of the managing controller if it is of the primary kind. A
// reference does not say whether the kind has namespaces. An owner that is not shown yet
// has its own event to come.
func (c *core) owner(m object.Meta) object.Key {
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

// Watches enqueues the keys that mapping adds for an object of informer, when that object
// changes.
//
// The loop calls mapping for the old and the new state of the object, as far as they exist,
// and enqueues each key once. So a key that an object leaves is enqueued too. The goroutine
// that delivers the events calls mapping, for one state at a time: mapping must be quick, and
// should use indexes of informers. It calls add before it returns. If it panics, the loop logs
// the panic and misses the keys that mapping has not added. If it does not return, this loop
// gets no more events from the informer until it does, as with a [Predicate]; other loops do.
func Watches[K comparable, T object.Object](informer cache.SharedInformer[T], mapping func(item cache.Item[T], add func(K)), predicates ...Predicate[T]) Option {
	return over("Watches", func(c *Keyed[K]) { watch(c, informer, mapping, predicates, false) })
}

// Delayed makes the keys of a source wait before they run, so that several changes lead to one
// run: Delayed(time.Second, Watches(...)). A key that waits already keeps its time, and a key
// that another source adds without delay does not wait. A wait below 0 is 0.
func Delayed(wait time.Duration, source Option) Option {
	return func(c *core) {
		before := c.delay
		c.delay = wait
		source(c)
		c.delay = before
	}
}

// watch adds a source. primary is set if its objects are those that the loop reconciles.
func watch[K comparable, T object.Object](c *Keyed[K], informer cache.SharedInformer[T], mapping func(cache.Item[T], func(K)), predicates []Predicate[T], primary bool) {
	knows(&c.core, informer)
	group, kind := informer.Handle().GroupKind()
	delay := c.delay
	c.sources = append(c.sources, func() (func(), error) {
		// Of a handler that was removed, a call may still run beside those of the next one.
		s := &source[K, T]{core: &c.core, informer: informer, mapping: mapping, predicates: predicates}
		s.add = s.keys.add
		anew := c.follows.anew
		options := cache.HandlerOptions{Name: c.name, EveryStep: true, CaughtUp: func() { c.heard.again(informer.Handle()) }}
		if primary {
			options.Resync = c.resync
		}
		c.heard.mu.Lock() // until the registration is noted
		defer c.heard.mu.Unlock()
		registration, err := informer.AddHandler(func(e cache.Event[T]) {
			// Objects of the first list and of a resync can wait for objects that have
			// changed.
			waits := e.Initial || e.Kind == cache.Resync
			if anew {
				e.Initial = false // it may have come, or changed, since the loop began to follow
			}
			keys := s.of(e)
			if len(keys) == 0 {
				return
			}
			m := e.Item().Meta()
			how := workqueue.Add{After: delay, Cause: workqueue.Cause{
				Source:  informer.Kind(),
				Verb:    e.Kind.String(),
				Ref:     object.Ref{Group: group, Kind: kind, Key: m.Key, UID: m.UID},
				From:    versionBefore(e),
				Version: string(m.Version),
			}}
			if waits {
				how.Priority = workqueue.Low
			}
			c.Enqueue(how, keys...)
			s.keys.clear()
		}, options)
		if err != nil {
			return nil, err
		}
		c.heard.of = append(c.heard.of, hearing{registration, informer.Handle(), primary})
		return registration.Remove, nil
	})
}

// versionBefore returns the version of the old state of an update. The old state of a delete is the object that is gone.
func versionBefore[T object.Object](e cache.Event[T]) string {
	if !e.Old.Exists() || !e.New.Exists() {
		return ""
	}
	return string(e.Old.Version())
}

// source finds the keys of events, one event at a time.
type source[K comparable, T object.Object] struct {
	core       *core
	informer   cache.SharedInformer[T]
	mapping    func(cache.Item[T], func(K))
	predicates []Predicate[T]

	keys keySet[K]
	add  func(K) // of keys
}

// of returns the keys of an event. The caller clears them.
func (s *source[K, T]) of(e cache.Event[T]) []K {
	if !s.chosen(e) {
		return nil
	}
	s.mapState(e.Old)
	s.mapState(e.New)
	return s.keys.list
}

// mapState adds the keys of one state of an object, if there is one.
func (s *source[K, T]) mapState(item cache.Item[T]) {
	if !item.Exists() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.core.contain("the mapping of "+s.informer.Kind(), "the event is lost to it", item.Key().String(), p)
		}
	}()
	s.mapping(item, s.add)
}

// chosen reports whether all predicates choose an event.
func (s *source[K, T]) chosen(e cache.Event[T]) (yes bool) {
	defer func() {
		if p := recover(); p != nil {
			s.core.contain("a predicate of "+s.informer.Kind(), "the event is chosen", e.Key().String(), p)
			yes = true
		}
	}()
	for _, p := range s.predicates {
		if p != nil && !p(e) {
			return false
		}
	}
	return true
}

// heard has the handlers of a controller.
type heard struct {
	mu sync.Mutex
	of []hearing
}

type hearing struct {
	registration *cache.Registration
	informer     cache.Handle
	primary      bool
}

// all returns the handlers.
func (h *heard) all() []hearing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.of)
}

// forget forgets the handlers.
func (h *heard) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of = nil
}

// again is called when the handler of an informer has caught up after changes were merged. A
// run may have read a state that no event showed, because the object has left it again. So
// again enqueues every object that the controller reconciles, and maps every object of that
// informer once more.
func (h *heard) again(informer cache.Handle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, of := range h.of {
		if of.primary || of.informer == informer {
			of.registration.Resync()
		}
	}
}
