// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// How long a read waits for own writes.
const (
	// readPatience is when a read fails.
	readPatience = 30 * time.Second
	// askAfter is when a read compares the cache with the server, and how long it waits until it does so again. A watch delivers
	// within milliseconds; the wait may also be for something that the informer will never see.
	askAfter = 5 * time.Second
)

// errStopped is the error of a read whose write the cache will not see any more.
var errStopped = errors.New("the cache has stopped")

// awaited is a write that a read waits for.
type awaited struct {
	place
	unseen unseen
}

// awaitObject waits until the view of an object has seen its own writes.
func (c *ownClient) awaitObject(ctx context.Context, gvk schema.GroupVersionKind, form decode.View, key crclient.ObjectKey) error {
	return c.await(ctx, gvk, form, func(v *view) []awaited {
		if !v.kind.resource.Namespaced {
			key.Namespace = ""
		}
		p := v.store.partOf(key.Namespace)
		if p == nil {
			return nil
		}
		at := place{p.informer.Handle(), object.Key{Namespace: key.Namespace, Name: key.Name}}
		if u, ok := c.own.one(at.informer, at.key); ok {
			return []awaited{{at, u}}
		}
		return nil
	})
}

// awaitNamespace waits until the view of a kind has seen the own writes of a namespace; "" is all.
func (c *ownClient) awaitNamespace(ctx context.Context, gvk schema.GroupVersionKind, form decode.View, namespace string) error {
	return c.await(ctx, gvk, form, func(v *view) []awaited {
		if !v.kind.resource.Namespaced {
			namespace = ""
		}
		var all []awaited
		for _, p := range v.store.parts {
			if namespace != "" && v.store.partOf(namespace) != p {
				continue
			}
			h := p.informer.Handle()
			for key, u := range c.own.of(h, inNamespace(namespace)) {
				all = append(all, awaited{place{h, key}, u})
			}
		}
		return all
	})
}

// await waits until the view that a read uses has seen own writes. If the view is removed meanwhile, the read uses another
// one. await returns a timeout, the error of ctx, or the error of a cache that has not been started or has stopped.
func (c *ownClient) await(ctx context.Context, gvk schema.GroupVersionKind, form decode.View, of func(*view) []awaited) error {
	v, all, err := c.awaited(gvk, form, of)
	if err != nil || len(all) == 0 {
		return err
	}
	start := time.Now()
	bounded, cancel := context.WithDeadline(ctx, start.Add(readPatience))
	defer cancel()
	for len(all) > 0 {
		waiting, end := v.waitContext(bounded)
		vain, err := c.own.await(waiting, start, all)
		cause := context.Cause(waiting)
		end()
		switch {
		case err == nil:
			return nil
		case bounded.Err() != nil || !errors.Is(cause, errRemoved):
			return vain.failure(ctx, cause, err)
		}
		if v, all, err = c.awaited(gvk, form, of); err != nil {
			return err
		}
	}
	return nil
}

// awaited returns the view that a read uses, and the own writes that it has not seen. There are none without a view: the read
// then says why.
func (c *ownClient) awaited(gvk schema.GroupVersionKind, form decode.View, of func(*view) []awaited) (*view, []awaited, error) {
	v := c.viewOf(gvk, form)
	switch {
	case v == nil:
		return nil, nil, nil
	case !c.cache.isStarted():
		return nil, nil, &crcache.ErrCacheNotStarted{}
	}
	return v, slices.DeleteFunc(of(v), func(a awaited) bool {
		seen := a.unseen.isSeen(a.informer, a.key)
		if seen {
			c.own.seen(a.informer, a.key, a.unseen)
		}
		return seen
	}), nil
}

// waitContext returns a context that ends with ctx, with the cache or with the view, and a function that ends it.
func (v *view) waitContext(ctx context.Context) (context.Context, func()) {
	v.kind.cache.mu.Lock()
	running := v.kind.cache.running
	v.kind.cache.mu.Unlock()
	alive, end := context.WithCancelCause(ctx)
	if running.Err() != nil {
		end(errStopped)
	}
	go func() {
		select {
		case <-running.Done(): // the end of the cache comes later: the cache waits for its handlers, and a handler may read
			end(errStopped)
		case <-v.removed:
			end(errRemoved)
		case <-alive.Done():
		}
	}()
	return alive, func() { end(nil) }
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

// await waits until informers have seen own writes. With an error, it returns the write that was not seen.
func (w *ownWrites) await(ctx context.Context, start time.Time, all []awaited) (awaited, error) {
	for _, a := range all {
		if err := w.awaitOne(ctx, start, a); err != nil {
			return a, err
		}
		w.seen(a.informer, a.key, a.unseen)
	}
	return awaited{}, nil
}

// failure returns the error of a read that has waited in vain. ctx is that of the read, cause is why its wait has ended.
func (a awaited) failure(ctx context.Context, cause, err error) error {
	what := fmt.Sprintf("reading after a write: the cache of %s has not seen the write of %s", a.unseen.gvk.Kind, a.key)
	if trouble := a.informer.Trouble(); trouble != nil {
		what += fmt.Sprintf(" (its last failure: %v)", trouble)
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case errors.Is(cause, errStopped):
		return fmt.Errorf("%s: %w", what, cause)
	}
	return apierrors.NewTimeoutError(fmt.Sprintf("%s within %s: %v", what, readPatience, err), 0)
}

// awaitOne waits for one write. It first compares with the server when the read, which started at start, has taken askAfter: a
// list may wait for many writes that no informer will ever see.
func (w *ownWrites) awaitOne(ctx context.Context, start time.Time, a awaited) error {
	u := a.unseen
	for patience := askAfter - time.Since(start); ; patience = askAfter {
		if !u.open && u.within(ctx, a.informer, a.key, patience) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now, exists, err := w.read(ctx, u.gvk, a.key)
		if err != nil && u.open {
			return fmt.Errorf("the write got no answer, and the object cannot be read from the server: %w", err)
		}
		if err != nil {
			continue
		}
		var seen bool
		if u, seen = u.compared(a.informer, a.key, now, exists); seen {
			return nil
		}
	}
}

// compared compares what an informer shows with what the server has. It returns what there is to see
// still, or that there is nothing.
func (u unseen) compared(h cache.Handle, key object.Key, now object.Meta, exists bool) (next unseen, seen bool) {
	shown, isShown := h.Meta(key)
	selected, certain := h.Selects(now)
	switch {
	case !exists, !selected: // certainly not
		next = unseen{gvk: u.gvk, version: u.version, ends: true, removed: true, uid: u.uid}
		if isShown && shown.Version.AtLeast(u.newest) {
			next.uid = shown.UID
		}
		return next, !isShown && (!u.open || hasReached(h, u.version))
	case isShown && shown.UID == now.UID && shown.Version.AtLeast(now.Version):
		return u, true
	case !isShown && !certain && !u.stays && !u.open && h.Trouble() == nil: // fields that are not known here leave it out
		return u, true
	case u.open, (u.ends || u.leaves) && u.uid == now.UID && !now.Deleting(), !now.Version.AtLeast(u.version):
		// The outcome of the write is the state of the server, which may also have lost a write.
		return unseen{gvk: u.gvk, version: now.Version, uid: now.UID, newest: now.Version, stays: certain}, false
	}
	return u, false
}

// within waits some time until an informer has seen a write, and reports whether it has.
func (u unseen) within(ctx context.Context, h cache.Handle, key object.Key, patience time.Duration) bool {
	if u.isSeen(h, key) {
		return true
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	await := func(seen <-chan struct{}, giveUp func()) bool {
		defer giveUp()
		select {
		case <-seen:
			return true
		case <-ctx.Done():
		case <-timer.C:
		}
		return isClosed(seen)
	}
	if !await(h.Observed(u.version)) {
		return false
	}
	return !u.ends && !u.leaves || await(u.end(h, key))
}

// end returns a channel that is closed when an informer has seen the end of the object, and a function
// that ends the wait.
func (u unseen) end(h cache.Handle, key object.Key) (<-chan struct{}, func()) {
	if u.removed || u.leaves {
		return h.Removed(key, u.uid)
	}
	return h.Gone(key, u.uid)
}

// isSeen reports whether an informer has seen a write. It sends no request, and does not wait.
func (u unseen) isSeen(h cache.Handle, key object.Key) bool {
	switch {
	case u.open, !hasReached(h, u.version):
		return false
	case !u.ends && !u.leaves:
		return true
	}
	ended, giveUp := u.end(h, key)
	giveUp()
	return isClosed(ended)
}

func hasReached(h cache.Handle, version object.Version) bool {
	reached, giveUp := h.Observed(version)
	giveUp()
	return isClosed(reached)
}

// read reads the metadata of an object from the server. Credentials that may list the kind need not have
// the right to get.
func (w *ownWrites) read(ctx context.Context, gvk schema.GroupVersionKind, key object.Key) (m object.Meta, exists bool, err error) {
	o := new(metav1.PartialObjectMetadata)
	o.SetGroupVersionKind(gvk)
	err = w.live.Get(ctx, crclient.ObjectKey{Namespace: key.Namespace, Name: key.Name}, o)
	switch {
	case apierrors.IsNotFound(err):
		return m, false, nil
	case apierrors.IsForbidden(err):
		named, err := w.left(ctx, gvk, &crclient.ListOptions{
			Namespace: key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name),
		})
		m, exists = named[key]
		return m, exists, err
	case err != nil:
		return m, false, err
	}
	return object.MetaOf(o), true, nil
}

// left lists the metadata of objects from the server.
func (w *ownWrites) left(ctx context.Context, gvk schema.GroupVersionKind, o *crclient.ListOptions) (map[object.Key]object.Meta, error) {
	list := new(metav1.PartialObjectMetadataList)
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	selection := crclient.ListOptions{Namespace: o.Namespace, LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}
	if err := w.live.List(ctx, list, &selection); err != nil {
		return nil, err
	}
	all := map[object.Key]object.Meta{}
	for i := range list.Items {
		all[object.KeyOf(&list.Items[i])] = object.MetaOf(&list.Items[i])
	}
	return all, nil
}
