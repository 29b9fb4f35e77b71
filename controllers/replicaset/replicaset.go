// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "replicaset-controller"

// Options changes how the controller works. The zero value is upstream's choice.
type Options struct {
	// Workers is how many ReplicaSets are worked on at a time. 0 is 5.
	// Source: k8s.io/kubernetes/pkg/controller/replicaset/config/v1alpha1.
	Workers int
	// Burst is how many Pods are created or deleted in one run. 0 is 500.
	// Source: k8s.io/kubernetes/pkg/controller/replicaset, BurstReplicas.
	Burst int
}

const (
	defaultWorkers = 5
	defaultBurst   = 500
)

// statusRetries is how often a status is written again after a conflict.
const statusRetries = 2

var replicaSets = object.Resource{Group: "apps", Version: "v1", Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if o.Workers < 0 || o.Burst < 0 {
		return nil, fmt.Errorf("making %s: %d workers and a burst of %d; give 1 or more, or 0 for the default", Name, o.Workers, o.Burst)
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Burst == 0 {
		o.Burst = defaultBurst
	}
	sets := cache.Informer[*appsv1.ReplicaSet](h)
	pods := cache.Informer[*corev1.Pod](h)
	matches, err := newMatches(sets, pods)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		sets:   sets,
		writer: client.For[*appsv1.ReplicaSet](h.Client()),
		keeper: keeper{
			client: h.Client(),
			pods:   pods,
			events: h.Recorder(Name),
			burst:  o.Burst,
			now:    time.Now,
		},
	}
	return controller.New(Name, r.reconcile,
		controller.For(sets),
		controller.Watches(pods, wakes(replicaSets, matches.sets)),
		controller.Workers(o.Workers),
		controller.Client(h.Client()),
		controller.Log(h.Logger()),
	), nil
}

type reconciler struct {
	sets   cache.SharedInformer[*appsv1.ReplicaSet]
	writer client.Typed[*appsv1.ReplicaSet]
	keeper keeper
}

// reconcile makes the Pods of one ReplicaSet what it asks for, and its status what
// they are.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	snapshot := r.sets.Snapshot()
	item := snapshot.Get(req.Key)
	if !item.Exists() {
		r.keeper.forget(req.Key)
		return controller.Result{}, nil
	}
	set, err := item.Object()
	if err != nil {
		return controller.Result{}, err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return controller.Result{}, controller.Terminal(fmt.Errorf("reading the selector of ReplicaSet %s: %w", req.Key, err))
	}
	state, err := r.keeper.keep(ctx, demand{
		key:      req.Key,
		owner:    set,
		kind:     replicaSets,
		replicas: replicas(set),
		minReady: time.Duration(set.Spec.MinReadySeconds) * time.Second,
		selector: selector,
		template: &set.Spec.Template,
		live: func(ctx context.Context) (object.Object, error) {
			return r.writer.Get(ctx, req.Key)
		},
		siblings: func() []types.UID { return siblings(snapshot, item) },
	})
	if err != nil {
		return controller.Result{}, err
	}
	if status, changed := newStatus(set, state); changed {
		if err := r.writeStatus(ctx, set, status); err != nil {
			return controller.Result{}, fmt.Errorf("writing the status of ReplicaSet %s: %w", req.Key, err)
		}
	}
	return controller.Result{After: state.nextCheck}, state.failure.err()
}

// replicas is how many Pods a ReplicaSet asks for. The server fills in 1 where a
// user says nothing.
func replicas(set *appsv1.ReplicaSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// siblings returns the UIDs of all ReplicaSets that have the owner of this one,
// itself among them.
func siblings(snapshot cache.Snapshot[*appsv1.ReplicaSet], item cache.Item[*appsv1.ReplicaSet]) []types.UID {
	owner := item.Meta().Controller()
	if owner == nil {
		return []types.UID{item.Meta().UID}
	}
	var uids []types.UID
	for key, sibling := range snapshot.ControlledBy(owner.UID) {
		if key.Namespace == item.Meta().Namespace {
			uids = append(uids, sibling.Meta().UID)
		}
	}
	return uids
}

// newStatus returns the status that a ReplicaSet should have, and whether that is
// another one than it has.
func newStatus(set *appsv1.ReplicaSet, s state) (appsv1.ReplicaSetStatus, bool) {
	old := &set.Status
	status := appsv1.ReplicaSetStatus{
		Replicas:             int32(s.counts.replicas),
		FullyLabeledReplicas: int32(s.counts.fullyLabeled),
		ReadyReplicas:        int32(s.counts.ready),
		AvailableReplicas:    int32(s.counts.available),
		TerminatingReplicas:  new(int32(s.counts.terminating)),
		ObservedGeneration:   set.Generation,
	}
	conditions, changed := failureCondition(old.Conditions, s.failure, s.at)
	status.Conditions = conditions
	changed = changed ||
		old.Replicas != status.Replicas ||
		old.FullyLabeledReplicas != status.FullyLabeledReplicas ||
		old.ReadyReplicas != status.ReadyReplicas ||
		old.AvailableReplicas != status.AvailableReplicas ||
		old.TerminatingReplicas == nil || *old.TerminatingReplicas != *status.TerminatingReplicas ||
		old.ObservedGeneration != status.ObservedGeneration
	return status, changed
}

// failureCondition returns the conditions with or without ReplicaFailure, and
// whether that is a change. A condition that stands keeps its first reason, as
// upstream has it.
func failureCondition(old []appsv1.ReplicaSetCondition, f *failure, at time.Time) ([]appsv1.ReplicaSetCondition, bool) {
	var others []appsv1.ReplicaSetCondition
	for _, c := range old {
		if c.Type != appsv1.ReplicaSetReplicaFailure {
			others = append(others, c)
		}
	}
	if stands := len(others) < len(old); stands == (f != nil) {
		return old, false
	}
	if f == nil {
		return others, true
	}
	return append(others, appsv1.ReplicaSetCondition{
		Type:               appsv1.ReplicaSetReplicaFailure,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(at),
		Reason:             f.reason,
		Message:            f.cause.Error(),
	}), true
}

// writeStatus writes a status. Where the ReplicaSet has changed since it was read,
// the status goes onto the newest one: what it says of the Pods stays true, and its
// observedGeneration says which spec it belongs to.
func (r *reconciler) writeStatus(ctx context.Context, set *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus) error {
	next := *set // everything but the status is shared with the cache, and only read
	for try := 0; ; try++ {
		next.Status = status
		_, err := r.writer.UpdateStatus(ctx, &next)
		if apierrors.IsNotFound(err) {
			return nil // it went meanwhile
		}
		if !apierrors.IsConflict(err) || try == statusRetries {
			return err
		}
		live, err := r.writer.Get(ctx, object.KeyOf(set))
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case live.UID != set.UID:
			return nil // another one has its name
		}
		next = *live
	}
}
