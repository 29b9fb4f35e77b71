// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// answered notes a write that has returned. by returns what an informer has to see of it.
func (c *ownClient) answered(s *sent, t target, outcome unseen, by func(p place) unseen) {
	var notes []note
	for _, p := range c.cache.places(t.gvk.GroupKind(), t.key) {
		notes = append(notes, note{p, by(p)})
	}
	c.own.answered(s, t.key, outcome, notes)
}

// wrote notes a write and its answer, which is nil if it is not known.
func (c *ownClient) wrote(s *sent, t target, answer object.Object) {
	outcome := unseen{gvk: t.gvk, uid: t.uid, newest: t.version}
	if answer != nil && endsNow(answer) {
		outcome.ends, outcome.removed = true, true
	}
	c.answered(s, t, outcome, func(p place) unseen { return outcome.by(p.informer, answer) })
}

// by returns what an informer has to see of a write.
func (u unseen) by(h cache.Handle, answer object.Object) unseen {
	if answer == nil {
		u.version = u.newest
		return u
	}
	selected, certain := h.SelectsObject(answer)
	switch {
	case certain && !selected:
		u.leaves = true
	case !u.ends:
		u.version, u.stays = u.newest, certain
	case certain: // the answer has the version before the end
		u.version = u.newest
	}
	return u
}

// endsNow reports whether an object is gone after a write that the server has answered with it: the
// write has removed the last finalizer of an object that was being deleted. The answer has the
// resourceVersion from before the write.
// Source: k8s.io/apiserver/pkg/registry/generic/registry, ShouldDeleteDuringUpdate.
func endsNow(o object.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// known is the newest state of an object that a client knows.
type known struct {
	uid     types.UID
	version object.Version
	// has reports whether an informer has shown this state, or will.
	has func(cache.Handle) bool
}

// known returns the newest state that the caller has read, that the cache shows, or that this client has written. With a UID,
// it returns a state of the object with this UID.
func (c *ownClient) known(t target, o object.Object, uid types.UID) known {
	k := known{uid: uid, has: func(cache.Handle) bool { return false }}
	is := func(next types.UID, version object.Version, has func(cache.Handle) bool) {
		if next != "" && (uid == "" || next == uid) && (k.version == "" || !k.version.AtLeast(version)) {
			k = known{next, version, has}
		}
	}
	for _, p := range c.cache.places(t.gvk.GroupKind(), t.key) {
		if shown, isShown := p.informer.Meta(p.key); isShown {
			is(shown.UID, shown.Version, func(h cache.Handle) bool {
				selected, certain := h.Selects(shown)
				return h == p.informer || selected && certain
			})
		}
		if u, noted := c.own.one(p.informer, p.key); noted {
			is(u.uid, u.newest, func(cache.Handle) bool { return false }) // each informer has a note of the write
		}
	}
	is(t.uid, t.version, func(h cache.Handle) bool {
		selected, certain := h.SelectsObject(o)
		return selected || !certain
	})
	return k
}

// deleted notes a deletion. The object may stay until its finalizers are removed. A deletion by name deletes the object that has
// the name then: k, which was known before it was sent, or a newer one.
func (c *ownClient) deleted(s *sent, t target, k known, byName bool) {
	outcome := unseen{gvk: t.gvk, uid: k.uid, newest: k.version, ends: true, byName: byName}
	c.answered(s, t, outcome, func(p place) unseen {
		u := outcome
		if k.has(p.informer) {
			u.version = k.version
		}
		shown, isShown := p.informer.Meta(p.key)
		u.open = byName && isShown && shown.UID != k.uid && shown.Version.AtLeast(k.version)
		return u
	})
}

// unknown notes a write whose outcome is not known.
func (c *ownClient) unknown(s *sent, t target) {
	outcome := unseen{gvk: t.gvk, open: true}
	c.answered(s, t, outcome, func(place) unseen { return outcome })
}

// deletedAll notes the deletion of several objects: those that the cache shows, or that this client has
// written, and that the server does not have, or has no longer for long.
func (c *ownClient) deletedAll(ctx context.Context, s *sent, gvk schema.GroupVersionKind, o *crclient.ListOptions) {
	all := object.Key{Namespace: o.Namespace}
	places := c.cache.places(gvk.GroupKind(), all)
	before := make([]map[object.Key]unseen, len(places))
	for i, p := range places {
		before[i] = c.mayBeDeleted(p, gvk, o)
	}
	left, err := c.own.left(ctx, gvk, o)
	var notes []note
	for i, p := range places {
		for key, u := range before[i] {
			now, there := left[key]
			switch {
			case err != nil:
				u = unseen{gvk: gvk, open: true}
			case there && now.Deleting():
				u = unseen{gvk: gvk, uid: now.UID, newest: now.Version, ends: true}
				if selected, certain := p.informer.Selects(now); selected && certain {
					u.version = now.Version
				}
			case there && (now.UID == u.uid || u.open):
				continue
			}
			notes = append(notes, note{place{p.informer, key}, u})
		}
	}
	s.places = places
	c.own.answered(s, all, unseen{gvk: gvk, ends: true, byName: true}, notes)
}

// mayBeDeleted returns the ends of the objects that an informer shows, or that this client has written. Selectors of the
// deletion may not select the latter: then their outcome is not known.
func (c *ownClient) mayBeDeleted(p place, gvk schema.GroupVersionKind, o *crclient.ListOptions) map[object.Key]unseen {
	selects := o.LabelSelector != nil && !o.LabelSelector.Empty() || o.FieldSelector != nil && !o.FieldSelector.Empty()
	all := map[object.Key]unseen{}
	for key, item := range p.informer.Metadata().Select(p.key.Namespace, o.LabelSelector) {
		m := item.Meta()
		all[key] = unseen{gvk: gvk, uid: m.UID, newest: m.Version, ends: true}
	}
	for key, u := range c.own.of(p.informer, inNamespace(p.key.Namespace)) {
		shown, isShown := all[key]
		switch {
		case isShown && shown.newest.AtLeast(u.newest):
		case selects, u.uid == "":
			all[key] = unseen{gvk: gvk, open: true}
		default:
			all[key] = unseen{gvk: gvk, uid: u.uid, newest: u.newest, ends: true}
		}
	}
	return all
}
