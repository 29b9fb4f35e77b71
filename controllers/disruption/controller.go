// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/podlimits"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controller/selectors"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/pace"
	"github.com/setpoint-io/setpoint/internal/shortlist"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "disruption-controller"

// eventSource is whom Events name, which users filter by.
// Source: k8s.io/kubernetes/pkg/controller/disruption.
const eventSource = "controllermanager"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many PodDisruptionBudgets are worked on at a time.
	Workers int
}

// kind is what PodDisruptionBudgets are.
var kind = object.Resource{Group: policyv1.GroupName, Version: "v1", Plural: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{policyv1.GroupName}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{policyv1.GroupName}, Resources: []string{"poddisruptionbudgets/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{appsv1.GroupName}, Resources: []string{"deployments", "replicasets", "statefulsets"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"replicationcontrollers"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"*"}, Resources: []string{"*/scale"}, Verbs: []string{"get"}},
		events.Rights(),
	}
}

type reconciler struct {
	budgets   cache.SharedInformer[*policyv1.PodDisruptionBudget]
	selecting *selectors.Index[*policyv1.PodDisruptionBudget]
	pods      cache.SharedInformer[*corev1.Pod]
	labelled  *selectors.Labelled[*corev1.Pod]
	owners    owners
	recorder  *events.Recorder
	log       *slog.Logger
	pace      pace.Pace[object.Key] // of writes
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		budgets: cache.Informer[*policyv1.PodDisruptionBudget](h).With(client.MetadataAnswer()),
		pods:    cache.Informer[*corev1.Pod](h).With(client.MetadataAnswer()),
		owners: owners{
			client:      h.Client(),
			deployments: cache.Informer[*appsv1.Deployment](h),
			sets:        cache.Informer[*appsv1.ReplicaSet](h),
			controllers: cache.Informer[*corev1.ReplicationController](h),
			stateful:    cache.Informer[*appsv1.StatefulSet](h),
		},
		recorder: h.Recorder(eventSource),
		log:      h.Logger().With("controller", Name),
		pace:     pace.Pace[object.Key]{Pause: pause},
	}
	r.selecting = selectors.NewIndex(r.budgets, selectorOf)
	r.labelled = selectors.NewLabelled(r.pods)
	budgets := controller.New(Name, r.reconcile,
		controller.For(r.budgets),
		controller.Watches(r.pods, r.budgetsOfPod, r.matters),
		controller.Watches(r.owners.deployments, ofTemplate(r, func(d *appsv1.Deployment) map[string]string { return d.Spec.Template.Labels }), predicate.GenerationChanged),
		controller.Watches(r.owners.sets, ofTemplate(r, func(s *appsv1.ReplicaSet) map[string]string { return s.Spec.Template.Labels }), predicate.GenerationChanged, alone),
		controller.Watches(r.owners.stateful, ofTemplate(r, func(s *appsv1.StatefulSet) map[string]string { return s.Spec.Template.Labels }), predicate.GenerationChanged),
		controller.Watches(r.owners.controllers, ofTemplate(r, labelsOfReplicationController), predicate.GenerationChanged),
		controller.Workers(o.Workers),
	)
	pods := controller.New(Name+"-pods", r.reconcilePod,
		controller.For(r.pods, predicate.Stays, r.needsRun),
		controller.Watches(r.budgets, r.podsOfSeveral, predicate.Stays, predicate.GenerationChanged),
	)
	return controller.Join(Name, budgets, pods), nil
}

// selectorOf returns which Pods a budget is for: all for an empty selector, none without one.
func selectorOf(pdb *policyv1.PodDisruptionBudget) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
}

// reconcile brings the status of one budget up to date.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	pdb, err := r.budgets.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.pace.Forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	now := time.Now()
	status, c, err := r.status(ctx, pdb, now)
	if err != nil && ctx.Err() == nil {
		// The API server must not allow evictions on numbers that may be wrong.
		status = failed(pdb, err)
	}
	for _, reason := range reasonsOf(err, status, c) {
		controller.Because(ctx, reason)
	}
	if !same(pdb.Status, status) {
		if left := r.pace.Left(req.Key, now); left > 0 && mayWait(pdb.Status, status) {
			return controller.Result{After: left}, err
		}
		next := *pdb
		next.Status = status
		_, failure := r.budgets.UpdateStatus(ctx, &next)
		switch {
		case apierrors.IsNotFound(failure):
			return controller.Result{}, nil // it was deleted meanwhile
		case apierrors.IsConflict(failure):
			// The API server has allowed an eviction meanwhile. The numbers are computed from
			// that state as soon as the cache has it, and never written over it.
			return controller.Result{Again: true}, nil
		case failure != nil:
			return controller.Result{}, fmt.Errorf("writing the status: %w", failure)
		}
		r.pace.Wrote(req.Key, now)
	}
	if err != nil {
		return controller.Result{}, err
	}
	for _, pod := range c.kept {
		r.recorder.Warning(pod, "NotDeleted", "Evict", "Pod was expected by PDB %s to be deleted but it wasn't", req.Key)
	}
	return controller.Result{After: c.next(now)}, nil
}

// status computes the status of a budget.
func (r *reconciler) status(ctx context.Context, pdb *policyv1.PodDisruptionBudget, now time.Time) (policyv1.PodDisruptionBudgetStatus, census, error) {
	fail := func(err error) (policyv1.PodDisruptionBudgetStatus, census, error) {
		return policyv1.PodDisruptionBudgetStatus{}, census{}, err
	}
	selector, err := selectorOf(pdb)
	if err != nil {
		r.recorder.Warning(pdb, "NoPods", "Reconcile", "Failed to get pods: %v", err)
		return fail(controller.Terminal(fmt.Errorf("reading the label selector: %w", err)))
	}
	var pods []*corev1.Pod
	for _, item := range r.labelled.Selected(r.pods.Snapshot(), pdb.Namespace, selector) {
		pod, err := item.Without(wire.Spec)
		if err != nil {
			return fail(err)
		}
		pods = append(pods, pod)
	}
	if len(pods) == 0 {
		r.recorder.Normal(pdb, "NoPods", "Reconcile", "No matching pods found")
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	wanted := sizes{total: int32(len(pods))}
	if podlimits.NeedsScale(pdb) {
		if wanted, err = r.owners.sum(ctx, pods); err != nil {
			r.recorder.Warning(pdb, "CalculateExpectedPodCountFailed", "Reconcile", "Failed to calculate the number of expected pods: %v", err)
			return fail(err)
		}
		if len(wanted.unmanaged) > 0 {
			r.recorder.Warning(pdb, "UnmanagedPods", "Reconcile", "Pods selected by this PodDisruptionBudget (selector: %v) were found "+
				"to be unmanaged: %s. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. "+
				"To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.", selector, shortlist.Join(wanted.unmanaged, mostNamed))
		}
	}
	budget, err := podlimits.PodDisruptionBudget(pdb, wanted.total)
	if err != nil {
		r.recorder.Warning(pdb, "CalculateExpectedPodCountFailed", "Reconcile", "Failed to calculate the number of expected pods: %v", err)
		return fail(controller.Terminal(err))
	}
	c := count(pods, pdb.Status.DisruptedPods, now)
	c.live = wanted.live
	return statusOf(pdb, budget, c), c, nil
}
