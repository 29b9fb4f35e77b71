// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
)

// History reads and writes ControllerRevisions. It is safe for concurrent use. Its writes are
// recorded, so the next run for a key waits until the informer has seen them; the controller
// must own the revisions, by Owns of package controller.
type History struct {
	revisions client.Typed[*appsv1.ControllerRevision]
	informer  cache.SharedInformer[*appsv1.ControllerRevision]
}

// New returns a History. The informer must hold the revisions of the owners' namespaces.
func New(informer cache.SharedInformer[*appsv1.ControllerRevision]) *History {
	return &History{revisions: informer.Server(), informer: informer}
}

// Owner is an object with a history.
type Owner struct {
	Object   object.Object
	Kind     schema.GroupVersionKind
	Selector labels.Selector // of its Pods, and so of its revisions
	// Live reads the owner from the server, as for [owned.Claim].
	Live func(context.Context) (object.Object, error)
}

// Claim returns the revisions of an owner, sorted. It adopts revisions without controller that
// the selector matches, and releases those of the owner that it does not match. The revisions
// belong to the informer and are read-only.
func (h *History) Claim(ctx context.Context, owner Owner) ([]*appsv1.ControllerRevision, error) {
	claim := owned.Claim[*appsv1.ControllerRevision]{
		Server: h.revisions, Owner: owner.Object, Kind: owner.Kind, Selector: owner.Selector, Live: owner.Live,
	}
	snapshot := h.informer.Snapshot()
	items, err := claim.Of(ctx, snapshot.ControlledBy(owner.Object.GetNamespace(), owner.Object.GetUID()), snapshot.Orphans(owner.Object.GetNamespace()))
	if err != nil {
		return nil, err
	}
	claimed := make([]*appsv1.ControllerRevision, 0, len(items))
	for _, item := range items {
		r, err := item.Object()
		if err != nil {
			return nil, err
		}
		claimed = append(claimed, r)
	}
	Sort(claimed)
	return claimed, nil
}

// Ensured is what [History.Ensure] returns.
type Ensured struct {
	// Revision is the revision of the state. It may belong to the informer and is read-only.
	Revision *appsv1.ControllerRevision
	// Collisions is the collision count for the owner's status; nil is none yet.
	Collisions *int32
}

// Ensure returns the revision of a state: the newest one if it is equal or the same, an older
// equal one with the next number, or a new one. The revisions are those of the owner and must
// be sorted. collisions is the count in the owner's status. A conflict is an error: the
// informer has not seen a change yet, and the controller must try again.
func (h *History) Ensure(ctx context.Context, s State, revisions []*appsv1.ControllerRevision, collisions *int32) (Ensured, error) {
	equal := s.Equal(revisions)
	if len(revisions) > 0 {
		newest := revisions[len(revisions)-1]
		if s.equal(newest) || len(equal) == 0 && s.Same != nil && s.Same(newest) {
			return Ensured{newest, collisions}, nil
		}
	}
	if len(equal) > 0 {
		r, err := h.renumber(ctx, equal[len(equal)-1], Next(revisions))
		return Ensured{r, collisions}, err
	}
	return h.create(ctx, s, Next(revisions), collisions)
}

// create creates a revision under the first name that is free.
func (h *History) create(ctx context.Context, s State, number int64, collisions *int32) (Ensured, error) {
	for {
		wanted := s.Revision(number, collisions)
		made, err := h.revisions.Create(ctx, wanted)
		if err == nil {
			return Ensured{made, collisions}, nil
		}
		key := object.KeyOf(wanted)
		if !apierrors.IsAlreadyExists(err) {
			return Ensured{Collisions: collisions}, fmt.Errorf("creating ControllerRevision %s: %w", key, err)
		}
		there, err := h.revisions.Get(ctx, key)
		if err != nil {
			return Ensured{Collisions: collisions}, fmt.Errorf("reading ControllerRevision %s, which exists already: %w", key, err)
		}
		if s.equal(there) && mayBeOf(there, s.Owner) {
			return Ensured{there, collisions}, nil // created before the informer has shown it
		}
		collisions = raised(collisions)
	}
}

// mayBeOf reports whether a revision is the owner's, or has no owner, so that the owner
// will adopt it.
func mayBeOf(r *appsv1.ControllerRevision, owner object.Object) bool {
	ref := metav1.GetControllerOfNoCopy(r)
	return ref == nil || ref.UID == owner.GetUID()
}

// raised returns a collision count that is one higher.
func raised(collisions *int32) *int32 {
	count := int32(1)
	if collisions != nil {
		count += *collisions
	}
	return &count
}

// renumber gives a revision another number. It is a conflict if the revision has changed.
func (h *History) renumber(ctx context.Context, r *appsv1.ControllerRevision, number int64) (*appsv1.ControllerRevision, error) {
	key := object.KeyOf(r)
	patch, err := client.MergePatch(map[string]any{
		"metadata": map[string]any{"uid": r.UID, "resourceVersion": r.ResourceVersion},
		"revision": number,
	})
	if err != nil {
		return nil, err
	}
	renumbered, err := h.revisions.Patch(ctx, key, patch)
	if err != nil {
		return nil, fmt.Errorf("making ControllerRevision %s the newest, number %d: %w", key, number, err)
	}
	return renumbered, nil
}

// Delete deletes a revision. A revision that is gone, or another one of its name, is no error.
func (h *History) Delete(ctx context.Context, r *appsv1.ControllerRevision) error {
	key := object.KeyOf(r)
	err := h.revisions.Delete(ctx, key, client.IfUID(r.UID))
	if err == nil || client.AbsentAt(err, key) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting ControllerRevision %s: %w", key, err)
}
