// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// ownWrites are the writes of a client that informers may not have seen. An informer that is made after
// a write lists after it, so it has nothing to see.
type ownWrites struct {
	live    crclient.Reader              // reads from the server
	current func() map[cache.Handle]bool // returns the informers that there are

	mu     sync.Mutex
	unseen map[cache.Handle]map[object.Key]unseen
	count  int // of all informers
	limit  int // of count, at which those that have been seen are removed
}

// leastLimit is the smallest limit of ownWrites.
const leastLimit = 128

// unseen is what an informer has to see of an object. It is seen once the informer has reached the
// version, if there is one, and then the end of the object, if that is set.
type unseen struct {
	gvk     schema.GroupVersionKind
	version object.Version
	ends    bool
	uid     types.UID // of the object; "" is any
	removed bool      // the object is not there any more, and not only being deleted
	open    bool      // the outcome of the write is not known
	stays   bool      // the informer selects the object, for certain
}

func newOwnWrites(live crclient.Reader, current func() map[cache.Handle]bool) *ownWrites {
	return &ownWrites{live: live, current: current, unseen: map[cache.Handle]map[object.Key]unseen{}, limit: leastLimit}
}

// note adds what an informer has to see.
func (w *ownWrites) note(h cache.Handle, key object.Key, next unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.unseen[h][key]
	if known {
		next = before.then(next)
	} else {
		w.count++
	}
	if w.unseen[h] == nil {
		w.unseen[h] = map[object.Key]unseen{}
	}
	w.unseen[h][key] = next
	if w.count > w.limit {
		w.prune()
	}
}

// then returns what is to be seen after a further write. An informer shows the states of an object in
// order: an earlier end is part of a later version, and an earlier version comes before a later end.
func (u unseen) then(next unseen) unseen {
	if !next.version.AtLeast(u.version) {
		next.version = u.version
	}
	next.open = next.open || u.open
	if next.ends && next.uid == "" {
		next.uid = u.uid
	}
	return next
}

// prune removes what informers have seen, and informers that there are no more. mu is held.
func (w *ownWrites) prune() {
	current := w.current()
	for h, objects := range w.unseen {
		for key, u := range objects {
			if !current[h] || u.isSeen(h, key) {
				delete(objects, key)
				w.count--
			}
		}
		if len(objects) == 0 {
			delete(w.unseen, h)
		}
	}
	w.limit = max(leastLimit, 2*w.count)
}

// of returns what an informer has to see of some objects.
func (w *ownWrites) of(h cache.Handle, matches func(object.Key) bool) map[object.Key]unseen {
	w.mu.Lock()
	defer w.mu.Unlock()
	var some map[object.Key]unseen
	for key, u := range w.unseen[h] {
		if matches(key) {
			if some == nil {
				some = map[object.Key]unseen{}
			}
			some[key] = u
		}
	}
	return some
}

// one returns what an informer has to see of an object.
func (w *ownWrites) one(h cache.Handle, key object.Key) (unseen, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, ok := w.unseen[h][key]
	return u, ok
}

// seen removes what an informer has seen, unless there has been a further write.
func (w *ownWrites) seen(h cache.Handle, key object.Key, u unseen) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now, ok := w.unseen[h][key]; !ok || now != u {
		return
	}
	delete(w.unseen[h], key)
	w.count--
	if len(w.unseen[h]) == 0 {
		delete(w.unseen, h)
	}
}

// handles returns the informers of a cache.
func (c *informerCache) handles() map[cache.Handle]bool {
	all := map[cache.Handle]bool{}
	for _, v := range c.views() {
		for _, p := range v.store.parts {
			all[p.informer.Handle()] = true
		}
	}
	return all
}

// place is where a cache has an object.
type place struct {
	informer cache.Handle
	key      object.Key
}

// places returns where a cache may have an object, in all versions of its kind.
func (c *informerCache) places(kind schema.GroupKind, key object.Key) []place {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []place
	for gvk, k := range c.kinds {
		if gvk.GroupKind() != kind {
			continue
		}
		if !k.resource.Namespaced {
			key.Namespace = ""
		}
		known := map[*store]bool{}
		for _, v := range k.views {
			if p := v.store.partOf(key.Namespace); p != nil && !known[v.store] {
				known[v.store] = true
				all = append(all, place{p.informer.Handle(), key})
			}
		}
	}
	return all
}

// wrote notes a write and its answer, which is nil if it is not known.
func (c *ownClient) wrote(t target, answer object.Object) {
	for _, p := range c.cache.places(t.gvk.GroupKind(), t.key) {
		c.own.note(p.informer, p.key, t.unseenBy(p.informer, answer))
	}
}

// unseenBy returns what an informer has to see of a write.
func (t target) unseenBy(h cache.Handle, answer object.Object) unseen {
	u := unseen{gvk: t.gvk, version: t.version, uid: t.uid}
	if answer == nil {
		return u
	}
	selected, certain := h.SelectsObject(answer)
	switch {
	case endsNow(answer), certain && !selected:
		return unseen{gvk: t.gvk, ends: true, removed: true, uid: t.uid}
	}
	u.stays = certain
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

// deleted notes a deletion of o. The object may stay until its finalizers are removed. Without a
// precondition, the server has deleted the object that had the name: it is the newest that the cache
// shows, or that the caller has read.
func (c *ownClient) deleted(t target, o object.Object, precondition bool) {
	for _, p := range c.cache.places(t.gvk.GroupKind(), t.key) {
		u := unseen{gvk: t.gvk, ends: true, uid: t.uid}
		shown, isShown := p.informer.Meta(p.key)
		selected, certain := p.informer.SelectsObject(o)
		switch {
		case precondition:
		case isShown && shown.Version.AtLeast(t.version):
			u.uid = shown.UID
		case t.uid != "" && (selected || !certain):
			u.version = t.version // that state comes before the end
		}
		c.own.note(p.informer, p.key, u)
	}
}

// unknown notes a write whose outcome is not known.
func (c *ownClient) unknown(t target) {
	for _, p := range c.cache.places(t.gvk.GroupKind(), t.key) {
		c.own.note(p.informer, p.key, unseen{gvk: t.gvk, open: true})
	}
}

// deletedAll notes the deletion of several objects: those that the cache shows, or that this client has
// written, and that the server does not have, or has no longer for long.
func (c *ownClient) deletedAll(ctx context.Context, gvk schema.GroupVersionKind, o *crclient.ListOptions) {
	left, err := c.own.left(ctx, gvk, o)
	for _, p := range c.cache.places(gvk.GroupKind(), object.Key{Namespace: o.Namespace}) {
		keys := map[object.Key]types.UID{}
		for key := range c.own.of(p.informer, inNamespace(p.key.Namespace)) {
			keys[key] = ""
		}
		for key, item := range p.informer.Metadata().Select(p.key.Namespace, o.LabelSelector) {
			keys[key] = item.Meta().UID
		}
		for key, uid := range keys {
			now, there := left[key]
			switch {
			case err != nil:
				c.own.note(p.informer, key, unseen{gvk: gvk, open: true})
			case !there || now.Deleting() || uid != "" && now.UID != uid:
				c.own.note(p.informer, key, unseen{gvk: gvk, ends: true, uid: uid})
			}
		}
	}
}

func inNamespace(namespace string) func(object.Key) bool {
	return func(key object.Key) bool { return namespace == "" || key.Namespace == namespace }
}

// viewOf returns the view that a read uses, which may share its informers with views that there were
// before the write. It returns nil if there is none: the read then says why.
func (c *ownClient) viewOf(gvk schema.GroupVersionKind, form decode.View) *view {
	v := c.cache.peek(gvk, form)
	if v == nil && !c.cache.options.ReaderFailOnMissingInformer {
		v, _ = c.cache.view(gvk, form)
	}
	return v
}

// awaitObject waits until the view of an object has seen its own writes.
func (c *ownClient) awaitObject(ctx context.Context, gvk schema.GroupVersionKind, form decode.View, key crclient.ObjectKey) error {
	v := c.viewOf(gvk, form)
	if v == nil {
		return nil
	}
	if !v.kind.resource.Namespaced {
		key.Namespace = ""
	}
	p := v.store.partOf(key.Namespace)
	if p == nil {
		return nil
	}
	at := object.Key{Namespace: key.Namespace, Name: key.Name}
	h := p.informer.Handle()
	u, ok := c.own.one(h, at)
	if !ok {
		return nil
	}
	return c.own.await(ctx, h, map[object.Key]unseen{at: u})
}

// awaitNamespace waits until the view of a kind has seen the own writes of a namespace; "" is all.
func (c *ownClient) awaitNamespace(ctx context.Context, gvk schema.GroupVersionKind, form decode.View, namespace string) error {
	v := c.viewOf(gvk, form)
	if v == nil {
		return nil
	}
	if !v.kind.resource.Namespaced {
		namespace = ""
	}
	for part, p := range v.store.parts {
		if namespace != "" && v.store.partOf(namespace) != v.store.parts[part] {
			continue
		}
		h := p.informer.Handle()
		if err := c.own.await(ctx, h, c.own.of(h, inNamespace(namespace))); err != nil {
			return err
		}
	}
	return nil
}
