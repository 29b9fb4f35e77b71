// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// source begins to add keys to a controller's queue, and returns how to end that.
type source func(*Controller) (remove func(), err error)

// Predicate chooses events. It sees metadata without a decode. A nil Predicate is
// all.
type Predicate[T object.Object] func(cache.Event[T]) bool

// For has every object of an informer looked at under its own key. The first For
// names the kind that [Owns] looks for.
func For[T object.Object](informer cache.SharedInformer[T], predicates ...Predicate[T]) Option {
	return func(c *Controller) {
		if c.primary == (cache.Handle{}) {
			c.primary = informer.Handle()
		}
		watch(c, informer, predicates, func(e cache.Event[T], add func(object.Key)) { add(e.Key()) })
	}
}

// Owns has an object looked at when one that it manages changes: the objects of
// informer whose managing controller is of the kind of the first [For].
func Owns[T object.Object](informer cache.SharedInformer[T], predicates ...Predicate[T]) Option {
	return func(c *Controller) {
		watch(c, informer, predicates, func(e cache.Event[T], add func(object.Key)) {
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
		})
	}
}

// owner returns the key of the managing controller if it is of the primary kind.
func (c *Controller) owner(m object.Meta) object.Key {
	ref := m.Controller()
	if ref == nil {
		return object.Key{}
	}
	group, kind := c.primary.GroupKind()
	if ref.Kind != kind || groupOf(ref.APIVersion) != group {
		return object.Key{}
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
// keys mapping adds.
func Watches[T object.Object](informer cache.SharedInformer[T], mapping func(e cache.Event[T], add func(object.Key))) Option {
	return func(c *Controller) { watch(c, informer, nil, mapping) }
}

func watch[T object.Object](c *Controller, informer cache.SharedInformer[T], predicates []Predicate[T],
	mapping func(cache.Event[T], func(object.Key))) {
	c.knows(informer.Handle())
	group, kind := informer.Handle().GroupKind()
	c.sources = append(c.sources, func(c *Controller) (func(), error) {
		registration, err := informer.AddHandler(func(e cache.Event[T]) {
			for _, p := range predicates {
				if p != nil && !p(e) {
					return
				}
			}
			m := e.Item().Meta()
			how := workqueue.Add{Cause: workqueue.Cause{
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
			mapping(e, func(key object.Key) { c.queue.AddWith(how, key) })
		}, cache.HandlerOptions{Name: c.name, EveryStep: true})
		if err != nil {
			return nil, err
		}
		return registration.Remove, nil
	})
}
