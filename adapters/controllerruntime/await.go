// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// How long a read waits for own writes.
const (
	// readPatience is when a read fails.
	readPatience = 30 * time.Second
	// askAfter is when a read compares the cache with the server. A watch delivers within
	// milliseconds; the wait may also be for something that the informer will never see.
	askAfter = 5 * time.Second
)

// await waits until an informer has seen own writes. Its error is a timeout, or that of ctx.
func (w *ownWrites) await(ctx context.Context, h cache.Handle, all map[object.Key]unseen) error {
	if len(all) == 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for key, u := range all {
		if err := w.awaitOne(bounded, h, key, u); err != nil {
			return failure(ctx, h, key, u, err)
		}
		w.seen(h, key, u)
	}
	return nil
}

// failure returns the error of a read that has waited in vain.
func failure(ctx context.Context, h cache.Handle, key object.Key, u unseen, err error) error {
	what := fmt.Sprintf("reading after a write: the cache of %s has not seen the write of %s", u.gvk.Kind, key)
	if trouble := h.Trouble(); trouble != nil {
		what += fmt.Sprintf(" (its last failure: %v)", trouble)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	return apierrors.NewTimeoutError(fmt.Sprintf("%s within %s: %v", what, readPatience, err), 0)
}

func (w *ownWrites) awaitOne(ctx context.Context, h cache.Handle, key object.Key, u unseen) error {
	for {
		if !u.open && u.within(ctx, h, key, askAfter) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now, exists, err := w.read(ctx, u.gvk, key)
		if err != nil && u.open {
			return fmt.Errorf("the write got no answer, and the object cannot be read from the server: %w", err)
		}
		if err != nil {
			continue
		}
		var seen bool
		if u, seen = u.compared(h, key, now, exists); seen {
			return nil
		}
	}
}

// compared compares what an informer shows with what the server has. It returns what there is to see
// still, or that there is nothing.
func (u unseen) compared(h cache.Handle, key object.Key, now object.Meta, exists bool) (next unseen, seen bool) {
	shown, isShown := h.Meta(key)
	if !exists {
		return unseen{gvk: u.gvk, ends: true, removed: true, uid: shown.UID}, !isShown
	}
	selected, certain := h.Selects(now)
	switch {
	case isShown && shown.UID == now.UID && shown.Version.AtLeast(now.Version):
		return u, true
	case !selected: // certainly not
		return unseen{gvk: u.gvk, ends: true, removed: true, uid: shown.UID}, !isShown
	case !isShown && !certain && !u.stays && h.Trouble() == nil: // fields that are not known here leave it out
		return u, true
	case u.open, u.ends && u.uid == now.UID && !now.Deleting(), !now.Version.AtLeast(u.version):
		// The outcome of the write is the state of the server, which may also have lost a write.
		return unseen{gvk: u.gvk, version: now.Version, stays: certain}, false
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
	return !u.ends || await(u.end(h, key))
}

// end returns a channel that is closed when an informer has seen the end of the object, and a function
// that ends the wait.
func (u unseen) end(h cache.Handle, key object.Key) (<-chan struct{}, func()) {
	if u.removed {
		return h.Removed(key, u.uid)
	}
	return h.Gone(key, u.uid)
}

// isSeen reports whether an informer has seen a write. It sends no request, and does not wait.
func (u unseen) isSeen(h cache.Handle, key object.Key) bool {
	if u.open {
		return false
	}
	observed, giveUp := h.Observed(u.version)
	giveUp()
	if !isClosed(observed) || !u.ends {
		return isClosed(observed)
	}
	ended, giveUp := u.end(h, key)
	giveUp()
	return isClosed(ended)
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
