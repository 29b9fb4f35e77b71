// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/object"
)

// Options changes how a controller works.
type Options struct {
	// Workers is how many objects are worked on at a time.
	Workers int
	// Burst is how many Pods are created or deleted in one run.
	Burst int
	// IgnoreDeletionCost ignores the annotation with which users choose the Pods to keep,
	// as upstream does without the feature gate PodDeletionCost.
	IgnoreDeletionCost bool
	// OmitTerminating leaves the Pods that terminate out of the status, as upstream
	// without the feature gate DeploymentReplicaSetTerminatingReplicas.
	OmitTerminating bool
}

// statusRetries is how often a status is written again after a conflict.
const statusRetries = 2

// New returns the controller of a kind, built on h, which runs it.
func New[T object.Object](h controller.Host, kind Kind[T], o Options) (*controller.Controller, error) {
	if o.Workers < 1 || o.Burst < 1 {
		return nil, fmt.Errorf("making %s: %d workers and a burst of %d; want 1 or more", kind.Controller, o.Workers, o.Burst)
	}
	owners := cache.Informer[T](h).With(client.MetadataAnswer())
	pods := cache.Informer[*corev1.Pod](h)
	selecting := selectors.NewIndex(owners, kind.selector)
	r := &reconciler[T]{
		kind:   kind,
		owners: owners,
		keeper: keeper{
			pods:    pods,
			orphans: selectors.NewOrphans(pods),
			writer:  podwriter.New(h.Client(), h.Recorder(kind.Source)),
			burst:   o.Burst,
			now:     time.Now,

			ignoreDeletionCost: o.IgnoreDeletionCost,
			ageRatio:           kind.AgeRatio,
		},
		omitTerminating: o.OmitTerminating,
	}
	return controller.New(kind.Controller, r.reconcile,
		controller.For(owners),
		controller.Watches(pods, wakes(kind.Resource, selecting), matters),
		controller.Workers(o.Workers),
	), nil
}

type reconciler[T object.Object] struct {
	kind   Kind[T]
	owners cache.SharedInformer[T]
	keeper keeper

	omitTerminating bool
}

// reconcile creates or deletes Pods until one owner has what it wants, and writes its
// status.
func (r *reconciler[T]) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	snapshot := r.owners.Snapshot()
	item := snapshot.Get(req.Key)
	if !item.Exists() {
		r.keeper.forget(req.Key)
		return controller.Result{}, nil
	}
	owner, err := item.Object()
	if err != nil {
		return controller.Result{}, err
	}
	asked, err := r.kind.Demand(owner)
	if err != nil {
		return controller.Result{}, controller.Terminal(fmt.Errorf("reading the spec of %s %s: %w", r.kind.Resource.Kind, req.Key, err))
	}
	state, err := r.keeper.keep(ctx, demand{
		Demand:   asked,
		key:      req.Key,
		owner:    owner,
		kind:     r.kind.Resource,
		live:     owned.LiveFrom(r.owners.Server(), owner),
		siblings: func() []types.UID { return siblings(snapshot, item) },
		first:    r.keeper.met.add(req.Key) && settled(owner.GetGeneration(), asked.Replicas, r.kind.Status(owner)),
	})
	if errors.Is(err, owned.ErrOwnerGone) {
		return controller.Result{}, nil // it will be shown
	}
	if err != nil {
		return controller.Result{}, err
	}
	status := newStatus(r.kind.Status(owner), owner.GetGeneration(), state)
	if r.omitTerminating {
		status.TerminatingReplicas = nil
	}
	if err := r.writeStatus(ctx, owner, status); err != nil {
		return controller.Result{}, fmt.Errorf("writing the status of %s %s: %w", r.kind.Resource.Kind, req.Key, err)
	}
	if state.again && state.failure == nil {
		return controller.Result{Again: true}, nil
	}
	return controller.Result{After: state.nextCheck, Always: true}, state.failure.err() // Pods become available meanwhile
}

// settled reports whether a status reports the number of Pods that are wanted, and all or none of them are ready.
func settled(generation int64, want int, s appsv1.ReplicaSetStatus) bool {
	return s.ObservedGeneration == generation && int(s.Replicas) == want && (s.ReadyReplicas == 0 || s.ReadyReplicas == s.Replicas)
}

// siblings returns the UIDs of all owners that have the owner of this one, itself
// among them.
func siblings[T object.Object](snapshot cache.Snapshot[T], item cache.Item[T]) []types.UID {
	owner := item.Meta().Controller()
	if owner == nil {
		return []types.UID{item.Meta().UID}
	}
	var uids []types.UID
	for _, sibling := range snapshot.ControlledBy(item.Key().Namespace, owner.UID) {
		uids = append(uids, sibling.Meta().UID)
	}
	return uids
}

// writeStatus writes a status if it differs from the owner's. Where the owner has changed
// since it was read, the status goes onto the newest one: its counts of Pods stay true,
// and its observedGeneration names the spec that it belongs to.
func (r *reconciler[T]) writeStatus(ctx context.Context, owner T, status appsv1.ReplicaSetStatus) error {
	next := r.kind.WithStatus(owner, status)
	// What the kind has no place for is no change.
	if equality.Semantic.DeepEqual(r.kind.Status(next), r.kind.Status(owner)) {
		return nil
	}
	for try := 0; ; try++ {
		_, err := r.owners.UpdateStatus(ctx, next)
		if apierrors.IsNotFound(err) {
			return nil // it went meanwhile
		}
		if !apierrors.IsConflict(err) || try == statusRetries {
			return err
		}
		live, err := r.owners.Server().Get(ctx, object.KeyOf(owner))
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case live.GetUID() != owner.GetUID():
			return nil // another Pod has its name
		}
		next = r.kind.WithStatus(live, status)
	}
}
