// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/controller/revisions"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "statefulset-controller"

// kind is what StatefulSets are.
var kind = object.Resource{Group: appsv1.GroupName, Version: "v1", Plural: "statefulsets", Kind: "StatefulSet", Namespaced: true}

// reconciler is what one run needs.
type reconciler struct {
	sets     cache.SharedInformer[*appsv1.StatefulSet]
	pods     cache.SharedInformer[*corev1.Pod]
	orphans  *selectors.Labelled[*corev1.Pod]
	claims   cache.SharedInformer[*corev1.PersistentVolumeClaim]
	history  *revisions.History
	writer   *podwriter.Writer
	recorder *events.Recorder
	gauges   *gauges
	now      func() time.Time
	options  Options
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	history := cache.Informer[*appsv1.ControllerRevision](h)
	r := &reconciler{
		sets:     cache.Informer[*appsv1.StatefulSet](h).With(client.MetadataAnswer()),
		pods:     cache.Informer[*corev1.Pod](h),
		claims:   cache.Informer[*corev1.PersistentVolumeClaim](h).With(client.MetadataAnswer()),
		history:  revisions.New(history),
		recorder: h.Recorder(Name),
		gauges:   newGauges(),
		now:      time.Now,
		options:  o,
	}
	r.orphans = selectors.NewOrphans(r.pods)
	r.writer = podwriter.New(h.Client(), r.recorder).WithMessages(podMessage).BeforeCreate(r.createClaims)
	r.gauges.StaleSyncSkips("statefulset_controller")
	return r.gauges.Of(controller.New(Name, r.reconcile,
		controller.For(r.sets),
		controller.Owns(history),
		controller.Watches(r.pods, r.setsOfPod, matters),
		controller.Watches(r.claims, r.setsOfClaim, claimMatters),
		controller.Workers(o.Workers),
	)), nil
}

// reconcile takes the next steps of one StatefulSet.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	set, err := r.sets.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.gauges.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return controller.Result{}, controller.Terminal(fmt.Errorf("reading the label selector: %w", err))
	}
	pods, err := r.members(ctx, set, selector)
	if errors.Is(err, owned.ErrOwnerGone) {
		return controller.Result{}, nil // the informer will show it
	}
	if err != nil {
		return controller.Result{}, err
	}
	if set.DeletionTimestamp != nil {
		return r.reportDeleted(ctx, set, pods)
	}
	known, v, err := r.look(ctx, set, selector, pods)
	if errors.Is(err, owned.ErrOwnerGone) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	p := decide(v)
	r.recorder.Record(set, p.events...)
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	if p.refused {
		return controller.Result{}, errors.Join(p.failure, r.prune(ctx, set, known, &v))
	}
	done, err := r.carryOut(ctx, set, &p)
	err = errors.Join(err, p.failure)
	result := controller.Result{After: p.after, Always: true}
	if !r.options.IgnoreMaxUnavailable {
		r.gauges.decided(set, &p)
	}
	p.count(v, done)
	conflict, failed := r.writeStatus(ctx, set, p.status)
	if conflict || done.kept {
		result = controller.Result{Again: true}
	}
	return result, errors.Join(err, failed, r.prune(ctx, set, known, &v))
}

// members returns the Pods of a StatefulSet in the order of their ordinals, after it has adopted
// and released Pods by their labels and names.
func (r *reconciler) members(ctx context.Context, set *appsv1.StatefulSet, selector labels.Selector) ([]*corev1.Pod, error) {
	snapshot := r.pods.Snapshot()
	claim := owned.Claim[*corev1.Pod]{
		Server: r.pods.Server(), Owner: set, Kind: kind.GroupVersionKind(), Selector: selector, Also: isNamedAfter(set), Live: owned.LiveFrom(r.sets.Server(), set),
	}
	items, err := claim.Of(ctx, snapshot.ControlledBy(set.Namespace, set.UID), r.orphans.Selected(snapshot, set.Namespace, selector))
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, 0, len(items))
	for _, item := range items {
		pod, err := item.Object()
		if err != nil {
			return nil, err // a Pod that is not counted would be created again
		}
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, ascending)
	return pods, nil
}

// look returns the history of a StatefulSet and what a run for it sees. It creates the revision of
// a template that is new, and makes an older one the newest after a rollback.
func (r *reconciler) look(ctx context.Context, set *appsv1.StatefulSet, selector labels.Selector, pods []*corev1.Pod) ([]*appsv1.ControllerRevision, view, error) {
	known, err := r.history.Claim(ctx, revisions.Owner{Object: set, Kind: kind.GroupVersionKind(), Selector: selector, Live: owned.LiveFrom(r.sets.Server(), set)})
	if err != nil {
		return nil, view{}, err
	}
	state, err := revisions.StatefulSet(set)
	if err != nil {
		return nil, view{}, controller.Terminal(err)
	}
	if r.options.ExactRevisions {
		state.Same = nil
	}
	collisions := set.Status.CollisionCount
	if collisions == nil {
		collisions = new(int32) // upstream hashes the 0
	}
	newest, err := r.history.Ensure(ctx, state, known, collisions)
	if err != nil {
		return nil, view{}, err
	}
	update := version{newest.Revision.Name, &set.Spec.Template}
	current, err := currentOf(set, known, update)
	if err != nil {
		return nil, view{}, controller.Terminal(err)
	}
	podSnapshot, claimSnapshot := r.pods.Snapshot(), r.claims.Snapshot()
	return known, view{
		set: set, pods: pods, now: r.now(), current: current, update: update, collisions: newest.Collisions, options: r.options,
		foreign: func(name string) *corev1.Pod { return shown(podSnapshot, set.Namespace, name) },
		claim:   func(name string) *corev1.PersistentVolumeClaim { return shown(claimSnapshot, set.Namespace, name) },
	}, nil
}

// currentOf returns the revision before the rollout, which the status names.
func currentOf(set *appsv1.StatefulSet, known []*appsv1.ControllerRevision, update version) (version, error) {
	for _, revision := range known {
		if revision.Name == set.Status.CurrentRevision && revision.Name != update.name {
			template, err := revisions.Template(revision)
			return version{revision.Name, template}, err
		}
	}
	return update, nil
}

// shown returns an object that a snapshot has, or nil. An object that cannot be read is one that
// exists.
func shown[T object.Object](snapshot cache.Snapshot[T], namespace, name string) T {
	item := snapshot.Get(object.Key{Namespace: namespace, Name: name})
	if !item.Exists() {
		var none T
		return none
	}
	o, err := item.Object()
	if err != nil {
		o = object.New[T]()
		o.SetNamespace(namespace)
		o.SetName(name)
	}
	return o
}

// reportDeleted writes the status of a StatefulSet that is being deleted. The garbage collector
// deletes its Pods.
func (r *reconciler) reportDeleted(ctx context.Context, set *appsv1.StatefulSet, pods []*corev1.Pod) (controller.Result, error) {
	controller.Because(ctx, controller.Reason{
		Code: codeDeleted, Text: "the StatefulSet is being deleted, and the garbage collector deletes its Pods in no order", Ends: "it is gone",
	})
	s := appsv1.StatefulSetStatus{
		ObservedGeneration: set.Generation, CurrentRevision: set.Status.CurrentRevision, UpdateRevision: set.Status.UpdateRevision,
		CollisionCount: set.Status.CollisionCount, Conditions: set.Status.Conditions,
	}
	count(&s, set, pods, nil, r.now())
	conflict, err := r.writeStatus(ctx, set, s)
	return controller.Result{Again: conflict}, err
}

// prune deletes the revisions beyond the limit of the history. One that a Pod was made from stays.
func (r *reconciler) prune(ctx context.Context, set *appsv1.StatefulSet, known []*appsv1.ControllerRevision, v *view) error {
	limit := int32(10) // the server fills it in
	if set.Spec.RevisionHistoryLimit != nil {
		limit = *set.Spec.RevisionHistoryLimit
	}
	inUse := map[string]bool{v.current.name: true, v.update.name: true}
	for _, pod := range v.pods {
		inUse[revisionOf(pod)] = true
	}
	var failures []error
	for _, revision := range revisions.Surplus(known, limit, func(r *appsv1.ControllerRevision) bool { return inUse[r.Name] }) {
		failures = append(failures, r.history.Delete(ctx, revision))
	}
	return errors.Join(failures...)
}

// outcome is what a run has written.
type outcome struct {
	created []*corev1.Pod
	gone    map[types.UID]bool // Pods that are deleted
	// kept reports that a Pod that was not available has changed since it was read, and stays until
	// another run decides. The change may start none.
	kept bool
}

// count counts the Pods as they are after a run into the plan's status.
func (p *plan) count(v view, done outcome) {
	count(&p.status, v.set, append(slices.Clip(v.pods), done.created...), done.gone, v.now)
	complete(&p.status, v.set, v.now)
}
