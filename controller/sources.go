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

// For has every object of an informer looked at under its own key. The first For
// names the kind that [Owns] looks for.
func For[T object.Object](informer cache.SharedInformer[T], predicates ...Predicate[T]) Option {
	return keysOption(func(c *Controller) {
		if c.primary == (cache.Handle{}) {
			c.primary = informer.Handle()
		}
		watch(c, informer, SameKey, predicates, true)
	})
}

// SameKey is the mapping to what has the key of an object: of Endpoints, say, to their Service.
func SameKey[T object.Object](item cache.Item[T], add func(object.Key)) { add(item.Key()) }

// Owns has an object looked at when one that it manages changes, and when one is not
// managed by it any more: the objects of informer whose managing controller is of the kind of
// the first [For].
func Owns[T object.Object](informer cache.SharedInformer[T], predicates ...Predicate[T]) Option {
	return keysOption(func(c *Controller) {
		c.owns = true
		From(c, informer, func(item cache.Item[T], add func(object.Key)) {
			if owner := c.owner(item.Meta()); !owner.IsZero() {
				add(owner)
			}
		}, predicates...)
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

// Watches has other objects looked at when one of informer changes: those whose keys mapping
// adds, see [From].
func Watches[T object.Object](informer cache.SharedInformer[T], mapping func(item cache.Item[T], add func(object.Key)), predicates ...Predicate[T]) Option {
	return keysOption(func(c *Controller) { From(c, informer, mapping, predicates...) })
}

// From has keys looked at when an object of informer changes: those that mapping adds. It
// must not be called after Run.
//
// mapping is called for the object as it was and as it is now, as far as there is such a
// state, and each key is added once: so what an object has left is looked at too, without a
// word. It is called by the goroutine that delivers the events, one at a time, and must be
// quick: indexes of informers are there for it. It calls add before it returns. Where it
// panics, what it has not added is lost to the loop, which the log says. Where it does not
// return, the loop alone stands still, as far as this source starts its runs: see the package.
func From[K comparable, T object.Object](loop *Keyed[K], informer cache.SharedInformer[T], mapping func(item cache.Item[T], add func(K)), predicates ...Predicate[T]) {
	watch(loop, informer, mapping, predicates, false)
}

// Delayed has the keys that a source adds wait for a time first, so that changes which
// follow soon are joined with the first in one run: Delayed(time.Second, Watches(...)). A key
// that waits already keeps its time, and one that is added without delay by another source
// does not wait. Less than 0 is 0.
func Delayed(wait time.Duration, s Option) Option {
	return keysOption(func(c *Controller) {
		before := c.delay
		c.delay = wait
		s.apply(c)
		c.delay = before
	})
}

// watch adds a source. primary says that its objects are those that the loop reconciles.
func watch[K comparable, T object.Object](c *Keyed[K], informer cache.SharedInformer[T], mapping func(cache.Item[T], func(K)), predicates []Predicate[T], primary bool) {
	c.knows(informer.Handle())
	group, kind := informer.Handle().GroupKind()
	s := &source[K, T]{core: &c.core, informer: informer, mapping: mapping, predicates: predicates}
	s.add = s.keys.add
	delay := c.delay
	c.sources = append(c.sources, func() (func(), error) {
		options := cache.HandlerOptions{Name: c.name, EveryStep: true, CaughtUp: func() { c.heard.again(informer.Handle()) }}
		if primary {
			options.Resync = c.resync
		}
		c.heard.mu.Lock() // until the registration is noted
		defer c.heard.mu.Unlock()
		registration, err := informer.AddHandler(func(e cache.Event[T]) {
			keys := s.of(e)
			if len(keys) == 0 {
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
			c.queue.AddWith(how, keys...)
			s.keys.clear()
		}, options)
		if err != nil {
			return nil, err
		}
		c.heard.of = append(c.heard.of, hearing{registration, informer.Handle(), primary})
		return registration.Remove, nil
	})
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

// of returns the keys of an event. They are to be cleared.
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
