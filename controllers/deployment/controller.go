// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name in logs, events and the list of controllers.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "deployment-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Deployments are worked on at a time.
	Workers int
	// OmitTerminating leaves the Pods that terminate out of the status, as upstream
	// without the feature gate DeploymentReplicaSetTerminatingReplicas.
	OmitTerminating bool
}

// kind is what Deployments are.
var kind = object.Resource{Group: appsv1.GroupName, Version: "v1", Plural: "deployments", Kind: "Deployment", Namespaced: true}

// reconciler is what one run needs.
type reconciler struct {
	deployments cache.SharedInformer[*appsv1.Deployment]
	selecting   *selectors.Index[*appsv1.Deployment]
	sets        cache.SharedInformer[*appsv1.ReplicaSet]
	pods        cache.SharedInformer[*corev1.Pod]
	recorder    *events.Recorder
	log         *slog.Logger
	now         func() time.Time

	omitTerminating bool
}

// New returns the controller. Its informers are those of h.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		deployments: cache.Informer[*appsv1.Deployment](h).With(client.MetadataAnswer()),
		sets:        cache.Informer[*appsv1.ReplicaSet](h).With(client.MetadataAnswer()),
		pods:        cache.Informer[*corev1.Pod](h),
		recorder:    h.Recorder(Name),
		log:         h.Logger().With("controller", Name),
		now:         time.Now,

		omitTerminating: o.OmitTerminating,
	}
	r.selecting = selectors.NewIndex(r.deployments, selectorOf)
	return controller.New(Name, r.reconcile,
		controller.For(r.deployments),
		controller.Owns(r.sets),
		controller.Watches(r.sets, r.adopters, claimChanged),
		controller.Watches(r.pods, r.waitsFor, predicate.Gone),
		controller.Workers(o.Workers),
	), nil
}

// reconcile takes the next step of one Deployment.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	d, err := r.deployments.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	now := r.now()
	if s := d.Spec.Selector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return controller.Result{}, r.apply(ctx, d, selectingAll(d), now)
	}
	sets, err := r.claim(ctx, d)
	if errors.Is(err, owned.ErrOwnerGone) {
		return controller.Result{}, nil // it will be shown
	}
	if err != nil {
		return controller.Result{}, err
	}
	pods, err := r.podsOf(d, sets)
	if err != nil {
		return controller.Result{}, err
	}
	p, err := decide(view{deployment: d, sets: sets, pods: pods, now: now})
	if err != nil {
		return controller.Result{}, controller.Terminal(err)
	}
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	if r.omitTerminating {
		p.status.TerminatingReplicas = nil
	}
	return controller.Result{After: p.after, Always: true}, r.apply(ctx, d, p, now)
}

// claim returns the sets that the Deployment manages, after it has adopted and
// released what its selector says.
func (r *reconciler) claim(ctx context.Context, d *appsv1.Deployment) ([]*appsv1.ReplicaSet, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, controller.Terminal(fmt.Errorf("reading the label selector: %w", err))
	}
	snapshot := r.sets.Snapshot()
	claim := owned.Claim[*appsv1.ReplicaSet]{
		Server: r.sets.Server(), Owner: d, Kind: kind.GroupVersionKind(), Selector: selector,
		Live: owned.LiveFrom(r.deployments.Server(), d),
	}
	items, err := claim.Of(ctx, snapshot.ControlledBy(d.Namespace, d.UID), snapshot.Orphans(d.Namespace))
	if err != nil {
		return nil, err
	}
	sets := make([]*appsv1.ReplicaSet, 0, len(items))
	for _, item := range items {
		set, err := item.Object()
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// podsOf returns the Pods that keep a Recreate rollout waiting.
func (r *reconciler) podsOf(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) (map[types.UID][]*corev1.Pod, error) {
	all := map[types.UID][]*corev1.Pod{}
	snapshot := r.pods.Snapshot()
	for _, set := range sets {
		if !mayHaveOldPods(d, set) {
			continue
		}
		pods, err := cache.Objects(snapshot.ControlledBy(set.Namespace, set.UID))
		if err != nil {
			return nil, err
		}
		all[set.UID] = pods
	}
	return all, nil
}
