// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// OwnedBy returns the reference that marks an object as managed by owner, and that
// has a foreground deletion of owner wait for it.
func OwnedBy(owner object.Object, kind schema.GroupVersionKind) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, kind)
}

// ErrOwnerGone is the error of a [Claim] that would adopt for an owner which, by now, is
// being deleted or gone, or another object under its name, though the informer still shows
// it. There is nothing to be done then, and nothing to try again: the informer will show it
// too, and bring the key.
var ErrOwnerGone = errors.New("the owner is being deleted or gone")

// Claim decides which objects an owner manages.
type Claim[T object.Object] struct {
	Client   *client.Client
	Owner    object.Object
	Kind     schema.GroupVersionKind // of the owner
	Selector labels.Selector
	// Live reads the owner from the server. Before the first adoption it must
	// show the same UID and no deletion timestamp, else the error is ErrOwnerGone: an
	// informer may not have seen yet that the owner is gone.
	Live func(context.Context) (object.Object, error)
	// Wanted leaves out objects that are not adopted though they match. Objects
	// that are managed already stay. Nil is all.
	Wanted func(cache.Item[T]) bool

	checked bool
	refused error
}

// Of returns the objects among items that the owner manages: those that it manages
// already and whose labels match, and those without managing controller whose
// labels match, after it has adopted them. Managed objects that match no longer
// are released, unless the owner is being deleted. Errors of single objects do
// not stop the rest; they are joined.
func (c *Claim[T]) Of(ctx context.Context, items ...iter.Seq2[object.Key, cache.Item[T]]) ([]cache.Item[T], error) {
	var claimed []cache.Item[T]
	var errs []error
	for _, seq := range items {
		for _, item := range seq {
			mine, err := c.claim(ctx, item)
			if err != nil {
				errs = append(errs, err)
			}
			if mine {
				claimed = append(claimed, item)
			}
		}
	}
	return claimed, errors.Join(errs...)
}

func (c *Claim[T]) claim(ctx context.Context, item cache.Item[T]) (bool, error) {
	m := item.Meta()
	matches := c.Selector.Matches(m.Labels)
	ownerGoes := c.Owner.GetDeletionTimestamp() != nil
	if ref := m.Controller(); ref != nil {
		switch {
		case ref.UID != c.Owner.GetUID():
			return false, nil
		case matches:
			return true, nil
		case ownerGoes:
			return false, nil
		}
		return false, c.release(ctx, m)
	}
	if ownerGoes || !matches || m.Deleting() || m.Namespace != c.Owner.GetNamespace() {
		return false, nil
	}
	if c.Wanted != nil && !c.Wanted(item) {
		return false, nil
	}
	err := c.adopt(ctx, m)
	if client.Absent(err) {
		return false, nil // it went meanwhile
	}
	return err == nil, err
}

// adopt makes the owner the managing controller of an object.
func (c *Claim[T]) adopt(ctx context.Context, m object.Meta) error {
	if !c.checked {
		c.checked = true
		c.refused = c.mayAdopt(ctx)
	}
	if c.refused != nil {
		return fmt.Errorf("adopting %s: %w", m.Key, c.refused)
	}
	ref := OwnedBy(c.Owner, c.Kind)
	if err := c.change(ctx, m, []any{ref}, append(slices.Clone(m.OwnerReferences), ref)); err != nil {
		return fmt.Errorf("adopting %s: %w", m.Key, err)
	}
	return nil
}

// change changes the owner references of an object: by a strategic merge patch, which names
// the one that changes, or, where the server does not take those, by a merge patch, which
// has all of them. Another object of that name is a conflict, and of a merge patch also an
// object that has changed.
func (c *Claim[T]) change(ctx context.Context, m object.Meta, one []any, all []metav1.OwnerReference) error {
	view := client.For[T](c.Client)
	resource, err := view.Resource(ctx)
	if err != nil {
		return err
	}
	metadata := map[string]any{"uid": m.UID, "ownerReferences": one}
	encode := client.StrategicPatch
	if !client.Builtin(resource.GroupVersionKind().GroupKind()) {
		metadata["ownerReferences"], metadata["resourceVersion"] = all, m.Version
		encode = client.MergePatch
	}
	patch, err := encode(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = view.Patch(ctx, m.Key, patch)
	return err
}

func (c *Claim[T]) mayAdopt(ctx context.Context) error {
	live, err := c.Live(ctx)
	switch {
	case client.Absent(err):
		return fmt.Errorf("%s %s: %w", c.Kind.Kind, object.KeyOf(c.Owner), ErrOwnerGone)
	case err != nil:
		return err
	case live.GetUID() != c.Owner.GetUID():
		return fmt.Errorf("%s %s: another one has its name: %w", c.Kind.Kind, object.KeyOf(c.Owner), ErrOwnerGone)
	case live.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s %s: %w", c.Kind.Kind, object.KeyOf(c.Owner), ErrOwnerGone)
	}
	return nil
}

// release takes the owner's reference out of an object.
func (c *Claim[T]) release(ctx context.Context, m object.Meta) error {
	mine := func(ref metav1.OwnerReference) bool { return ref.UID == c.Owner.GetUID() }
	err := c.change(ctx, m, []any{map[string]any{"$patch": "delete", "uid": c.Owner.GetUID()}},
		slices.DeleteFunc(slices.Clone(m.OwnerReferences), mine))
	switch {
	case err == nil, client.Absent(err):
		return nil
	case apierrors.IsInvalid(err):
		// The object has no owner references any more, or another UID: either
		// way there is nothing to release.
		return nil
	}
	return fmt.Errorf("releasing %s: %w", m.Key, err)
}
