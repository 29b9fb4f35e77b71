// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package owned

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

// By returns the reference that marks an object as managed by owner. A foreground deletion
// of owner waits for the object.
func By(owner object.Object, kind schema.GroupVersionKind) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, kind)
}

// ErrOwnerGone is the error of a [Claim] whose owner is being deleted, is gone, or was
// replaced by another object of its name, although the informer still shows it. A reconcile
// has nothing to do then and nothing to retry: the informer will show the change too, and
// enqueue the key again.
var ErrOwnerGone = errors.New("the owner is being deleted or gone")

// Claim decides which objects an owner manages.
type Claim[T object.Object] struct {
	Server   client.Typed[T] // adopts and releases the objects
	Owner    object.Object
	Kind     schema.GroupVersionKind // of the owner
	Selector labels.Selector
	// Also is what else decides whether an object matches, such as its name. Nil is nothing.
	Also func(object.Meta) bool
	// Live reads the owner from the server, as LiveFrom does. Of calls it once, before the first adoption. If
	// the owner has another UID or a deletion timestamp, the error is ErrOwnerGone: the
	// informer may not have seen yet that the owner is gone.
	Live func(context.Context) (object.Object, error)
	// Finalizer is added to objects in the same patch that adopts them, and removed in the patch
	// that releases them. Empty is none.
	Finalizer string

	checked bool
	refused error
}

// LiveFrom returns a [Claim.Live]: it reads an owner, by its name, from the server.
func LiveFrom[T object.Object](server client.Typed[T], owner T) func(context.Context) (object.Object, error) {
	return func(ctx context.Context) (object.Object, error) { return server.Get(ctx, object.KeyOf(owner)) }
}

// Of returns the objects among items that the owner manages: objects that it manages
// already and that match, and objects without a managing controller that match, which Of
// adopts. Of releases managed objects that do not match any more, unless the owner is being
// deleted. An error of one object does not stop the others; the errors are joined.
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
	matches := c.Selector.Matches(m.Labels) && (c.Also == nil || c.Also(m))
	ownerGoes := c.Owner.GetDeletionTimestamp() != nil
	if ref := m.Controller(); ref != nil {
		switch {
		case ref.UID != c.Owner.GetUID(), c.elsewhere(m):
			return false, nil
		case matches:
			return true, nil
		case ownerGoes:
			return false, nil
		}
		return false, c.release(ctx, m)
	}
	if ownerGoes || !matches || m.Deleting() || c.elsewhere(m) {
		return false, nil
	}
	err := c.adopt(ctx, m)
	if client.Absent(err) {
		return false, nil // it was deleted in the meantime
	}
	return err == nil, err
}

// elsewhere reports whether an object is in another namespace than the owner. An owner in a namespace
// manages nothing in others, whatever a reference there says.
func (c *Claim[T]) elsewhere(m object.Meta) bool {
	return c.Owner.GetNamespace() != "" && m.Namespace != c.Owner.GetNamespace()
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
	ref := By(c.Owner, c.Kind)
	metadata := change{
		one: []any{ref}, all: append(slices.Clone(m.OwnerReferences), ref),
		directive: "finalizers", finalizers: append(c.otherFinalizers(m), c.Finalizer),
	}
	if err := c.patch(ctx, m, metadata); err != nil {
		return fmt.Errorf("adopting %s: %w", m.Key, err)
	}
	return nil
}

// change is what a patch changes of an object: its owner references, and its finalizers.
type change struct {
	one        []any                   // the reference that changes, for a strategic merge patch
	all        []metav1.OwnerReference // all references, for a merge patch
	directive  string                  // what a strategic merge patch does with the finalizer
	finalizers []string                // all finalizers, for a merge patch
}

// patch sends a change. A strategic merge patch names the one reference and the one finalizer
// that change. Servers take those of built-in kinds alone, so for other kinds a merge patch sends
// all of them. Another object under the name is a conflict; for a merge patch, so is an object
// that has changed.
func (c *Claim[T]) patch(ctx context.Context, m object.Meta, to change) error {
	resource, err := c.Server.Resource(ctx)
	if err != nil {
		return err
	}
	metadata := map[string]any{"uid": m.UID, "ownerReferences": to.one}
	if c.Finalizer != "" {
		metadata[to.directive] = []string{c.Finalizer}
	}
	encode := client.StrategicPatch
	if !client.Builtin(resource.GroupVersionKind().GroupKind()) {
		metadata = map[string]any{"uid": m.UID, "ownerReferences": to.all, "resourceVersion": m.Version}
		if c.Finalizer != "" {
			metadata["finalizers"] = to.finalizers
		}
		encode = client.MergePatch
	}
	patch, err := encode(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = c.Server.Patch(ctx, m.Key, patch)
	return err
}

// otherFinalizers returns the finalizers of an object without that of the claim.
func (c *Claim[T]) otherFinalizers(m object.Meta) []string {
	return slices.DeleteFunc(slices.Clone(m.Finalizers), func(name string) bool { return name == c.Finalizer })
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
	err := c.patch(ctx, m, change{
		one: []any{map[string]any{"$patch": "delete", "uid": c.Owner.GetUID()}}, all: slices.DeleteFunc(slices.Clone(m.OwnerReferences), mine),
		directive: "$deleteFromPrimitiveList/finalizers", finalizers: c.otherFinalizers(m),
	})
	switch {
	case err == nil, client.Absent(err):
		return nil
	case apierrors.IsInvalid(err):
		// The object has no owner references any more: there is nothing to release.
		return nil
	}
	return fmt.Errorf("releasing %s: %w", m.Key, err)
}
