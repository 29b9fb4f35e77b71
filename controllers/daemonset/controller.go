// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
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
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controller/revisions"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "daemonset-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many DaemonSets are worked on at a time.
	Workers int
	// Burst is how many Pods are created, and how many are deleted, in one run.
	Burst int
}

// kind is what DaemonSets are.
var kind = object.Resource{Group: appsv1.GroupName, Version: "v1", Plural: "daemonsets", Kind: "DaemonSet", Namespaced: true}

type reconciler struct {
	sets      cache.SharedInformer[*appsv1.DaemonSet]
	pods      cache.SharedInformer[*corev1.Pod]
	orphans   *selectors.Labelled[*corev1.Pod]
	nodes     cache.SharedInformer[*corev1.Node]
	revisions cache.SharedInformer[*appsv1.ControllerRevision]
	history   *revisions.History
	writer    *podwriter.Writer
	recorder  *events.Recorder
	burst     int
	now       func() time.Time
	enqueue   func(set, node object.Key) // a DaemonSet, because a node has changed

	mu       sync.Mutex
	memories map[object.Key]*memory
}

// memory is what the controller remembers of a DaemonSet between two runs. After a restart it is
// made anew. Only the run for the DaemonSet uses it, except the places.
type memory struct {
	uid    types.UID
	places *places
	reader reader
	failed backoff
	runs   int // for tests
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	_, c, err := build(h, o)
	if err != nil {
		return nil, err
	}
	metrics := &controllers.Metrics{}
	metrics.StaleSyncSkips("daemonset_controller")
	return metrics.Of(c), nil
}

func build(h controller.Host, o Options) (*reconciler, controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, nil, fmt.Errorf("making %s: %w", Name, err)
	}
	if o.Burst < 1 {
		return nil, nil, fmt.Errorf("making %s: a burst of %d; want 1 or more", Name, o.Burst)
	}
	r := newReconciler(h, o)
	selecting := selectors.NewIndex(r.sets, selectorOf)
	sets := controller.New(Name, r.reconcile,
		controller.For(r.sets),
		controller.Watches(r.revisions, setsOf[*appsv1.ControllerRevision](selecting)),
		controller.Watches(r.pods, setsOf[*corev1.Pod](selecting), matters),
		controller.Reads(r.nodes),
		controller.Workers(o.Workers),
	)
	r.enqueue = enqueuing(sets)
	nodes := controller.New(Name+"-nodes", r.reconcileNode, controller.For(r.nodes, predicate.Later, mayFitOtherwise))
	return r, controller.Join(Name, sets, nodes), nil
}

func newReconciler(h controller.Host, o Options) *reconciler {
	r := &reconciler{
		sets:      cache.Informer[*appsv1.DaemonSet](h).With(client.MetadataAnswer()),
		pods:      cache.Informer[*corev1.Pod](h),
		nodes:     cache.Informer[*corev1.Node](h),
		revisions: cache.Informer[*appsv1.ControllerRevision](h),
		recorder:  h.Recorder(Name),
		burst:     o.Burst,
		now:       time.Now,
		memories:  map[object.Key]*memory{},
	}
	r.orphans = selectors.NewOrphans(r.pods)
	r.history = revisions.New(r.revisions)
	r.writer = podwriter.New(h.Client(), r.recorder).WithSlots(func(pod *corev1.Pod) string { return nodeOf(&pod.Spec) })
	return r
}

// selectorOf returns which Pods a DaemonSet selects.
func selectorOf(set *appsv1.DaemonSet) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(set.Spec.Selector)
}

// reconcile takes the next step of one DaemonSet.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	if len(req.Unseen) > 0 {
		// The watch has been broken for minutes. Pods may exist that the cache does not show.
		return controller.Result{}, fmt.Errorf("waiting for the cache: it does not show yet that this controller wrote %s %s (%s)",
			req.Unseen[0].Resource.Kind, req.Unseen[0].Key, req.Unseen[0].Verb)
	}
	set, err := r.sets.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if set.DeletionTimestamp != nil {
		// Its revisions may be gone already, so nothing that depends on them can be decided.
		controller.Because(ctx, controller.Reason{Code: codeDeleted, Text: "the DaemonSet is being deleted"})
		return controller.Result{}, nil
	}
	selector, err := selectorOf(set)
	if err != nil {
		controller.Because(ctx, controller.Reason{
			Code: codeInvalid, Text: "the label selector cannot be read: {error}", Params: controller.With("error", err.Error()), Ends: "the spec changes",
		})
		return controller.Result{}, controller.Terminal(fmt.Errorf("reading the label selector: %w", err))
	}
	if selector.Empty() {
		r.recorder.Warning(set, reasonSelectingAll, reconciling, "This daemon set is selecting all pods. A non-empty selector is required.")
		controller.Because(ctx, controller.Reason{Code: codeSelectsAll, Text: "the label selector selects all Pods", Ends: "spec.selector has labels"})
		return controller.Result{}, nil
	}
	result, err := r.step(ctx, set, selector)
	switch {
	case errors.Is(err, owned.ErrOwnerGone):
		return controller.Result{}, nil // the informer will show it
	case apierrors.IsConflict(err):
		return controller.Result{Again: true}, nil // another client was faster
	}
	return result, err
}

// step finds out what there is, decides, acts, and writes the status.
func (r *reconciler) step(ctx context.Context, set *appsv1.DaemonSet, selector labels.Selector) (controller.Result, error) {
	m := r.recall(set)
	m.runs++
	pods, err := r.claim(ctx, m, set, selector)
	if err != nil {
		return controller.Result{}, fmt.Errorf("finding the Pods: %w", err)
	}
	h, err := r.remember(ctx, set, selector, pods)
	if err != nil {
		return controller.Result{}, err
	}
	places, err := m.places.refresh(r.nodes, newFitting(&set.Spec.Template))
	if err != nil {
		return controller.Result{}, err
	}
	v := view{
		set: set, places: places, pods: byNode(pods), failed: &m.failed, burst: r.burst, now: r.now(),
		revision: revision{hash: h.now.Labels[hashLabel], generation: generationOf(set), since: h.now.CreationTimestamp.Time},
	}
	m.failed.begin(set.Status.ObservedGeneration, v.now)
	p := decide(v)
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	result := controller.Result{After: p.after, Always: true}
	made, failure := r.create(ctx, &v, &p)
	kept, err := r.delete(ctx, &v, &p, m)
	if kept {
		result = controller.Result{Again: true}
	}
	failure = errors.Join(failure, err)
	if failure == nil {
		failure = r.prune(ctx, set, h, pods)
	}
	v.pods = byNode(append(pods, made...))
	failure = errors.Join(failure, r.writeStatus(ctx, set, statusOf(&v, h.collisions)))
	if failure == nil && p.invalid != nil {
		failure = controller.Terminal(fmt.Errorf("reading the limits of rollouts: %w", p.invalid))
	}
	return result, failure
}

// create creates the Pods of a plan, and returns them.
func (r *reconciler) create(ctx context.Context, v *view, p *plan) (made []*pod, err error) {
	owner := podwriter.Owner{Object: v.set, Kind: kind}
	snapshot := r.pods.Snapshot()
	wanted := make([]*corev1.Pod, 0, len(p.create))
	for _, node := range p.create {
		wanted = append(wanted, newPod(owner, &v.set.Spec.Template, v.revision, node))
	}
	created, err := r.writer.Create(ctx, owner, wanted, func(name string) bool {
		return snapshot.Get(object.Key{Namespace: v.set.Namespace, Name: name}).Exists()
	})
	for _, o := range created {
		made = append(made, newPodOf(o))
	}
	return made, err
}

// delete deletes the Pods of a plan. kept reports that a Pod that was not available has changed
// since it was read, and stays until another run decides: the change may start none.
func (r *reconciler) delete(ctx context.Context, v *view, p *plan, m *memory) (kept bool, err error) {
	owner := podwriter.Owner{Object: v.set, Kind: kind}
	r.announce(v.set, p.remove)
	var victims, unavailable []*corev1.Pod
	for _, one := range p.remove {
		o := m.reader.identity(one.pod)
		switch one.why {
		case broken:
			unavailable = append(unavailable, o)
		case failed:
			m.failed.note(one.node, v.now)
			victims = append(victims, o)
		case surplus, succeeded, outdated:
			victims = append(victims, o)
		}
	}
	_, failure := r.writer.Delete(ctx, owner, victims)
	deleted, err := r.writer.DeleteUnchanged(ctx, owner, unavailable)
	return slices.Contains(deleted, false), errors.Join(failure, err)
}

// claim returns the Pods of a DaemonSet. It adopts Pods without a controller that the selector
// matches, and releases those that it does not match.
func (r *reconciler) claim(ctx context.Context, m *memory, set *appsv1.DaemonSet, selector labels.Selector) ([]*pod, error) {
	snapshot := r.pods.Snapshot()
	claim := owned.Claim[*corev1.Pod]{
		Server: r.pods.Server(), Owner: set, Kind: kind.GroupVersionKind(), Selector: selector, Live: owned.LiveFrom(r.sets.Server(), set),
	}
	items, err := claim.Of(ctx, snapshot.ControlledBy(set.Namespace, set.UID), r.orphans.Selected(snapshot, set.Namespace, selector))
	if err != nil {
		return nil, err
	}
	return m.reader.read(items)
}

// recall returns what the controller remembers of a DaemonSet. Another one of the name is new.
func (r *reconciler) recall(set *appsv1.DaemonSet) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := object.KeyOf(set)
	m := r.memories[key]
	if m == nil || m.uid != set.UID {
		m = &memory{uid: set.UID, places: newPlaces()}
		r.memories[key] = m
	}
	return m
}

func (r *reconciler) forget(key object.Key) {
	r.mu.Lock()
	delete(r.memories, key)
	r.mu.Unlock()
	r.writer.Forget(key)
}
