// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	name      = "balancer-controller"
	class     = "example.com/balancer" // of the Services that are ours
	finalizer = "example.com/balancer"
	condition = "BalancerReady"

	// A worker that waits for an answer costs a goroutine, so there are many: as many
	// keys as hang at a time delay no other.
	workers = 100
	// After failures without advice of the provider, each key on its own.
	firstRetry, lastRetry = time.Second, 5 * time.Minute
)

type reconciler struct {
	client.Client

	provider *provider
}

func addController(mgr ctrl.Manager, p *provider) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&corev1.Service{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: changed})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   2*p.timeout + 10*time.Second,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(&reconciler{Client: mgr.GetClient(), provider: p})
}

// changed leaves out what makes no difference. Above all that is our own status: a run
// because of it would come before the time that the provider named.
func changed(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*corev1.Service)
	is, alsoOk := e.ObjectNew.(*corev1.Service)
	return !ok || !alsoOk || was.UID != is.UID ||
		!equality.Semantic.DeepEqual(was.Spec, is.Spec) || !was.DeletionTimestamp.Equal(is.DeletionTimestamp)
}

// Reconcile sees to the balancer of one Service.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	service := &corev1.Service{}
	if err := r.Get(ctx, req.NamespacedName, service); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ours(service) {
		return r.remove(ctx, service)
	}
	// From here on there may be a balancer, so the Service must not go without us.
	before := service.DeepCopy()
	if controllerutil.AddFinalizer(service, finalizer) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Patch(ctx, service, patch); err != nil {
			return ctrl.Result{}, err
		}
	}
	want := balancer{Name: req.String()}
	for _, port := range service.Spec.Ports {
		want.Ports = append(want.Ports, port.Port)
	}
	address, err := r.provider.ensure(ctx, string(service.UID), want)
	return r.conclude(ctx, service, address, err)
}

// remove sees to it that there is no balancer.
func (r *reconciler) remove(ctx context.Context, service *corev1.Service) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(service, finalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.provider.remove(ctx, string(service.UID)); err != nil {
		return r.conclude(ctx, service, "", err)
	}
	before := service.DeepCopy()
	controllerutil.RemoveFinalizer(service, finalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, service, patch))
}

// conclude writes down how it went, and decides when the Service is reconciled again.
func (r *reconciler) conclude(ctx context.Context, service *corev1.Service, address string, failure error) (ctrl.Result, error) {
	now := service.DeepCopy()
	describe(now, address, failure, time.Now())
	if !equality.Semantic.DeepEqual(service, now) {
		if err := r.Status().Update(ctx, now); err != nil {
			return ctrl.Result{}, err
		}
	}
	return next(failure)
}

// next is where the answers of an API become those of a Reconciler.
func next(failure error) (ctrl.Result, error) {
	if later, ok := errors.AsType[*laterError](failure); ok {
		return ctrl.Result{RequeueAfter: later.after}, nil
	}
	if _, refused := errors.AsType[*refusedError](failure); refused {
		return ctrl.Result{}, reconcile.TerminalError(failure)
	}
	return ctrl.Result{}, failure
}

// ours reports whether a Service is to have a balancer.
func ours(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		s.Spec.LoadBalancerClass != nil && *s.Spec.LoadBalancerClass == class
}

// describe sets the status: the address if there is one, and what is waited for if not.
func describe(service *corev1.Service, address string, failure error, at time.Time) {
	status, reason, message := metav1.ConditionTrue, "Ready", "the balancer leads here"
	if later, ok := errors.AsType[*laterError](failure); ok {
		status, reason = metav1.ConditionFalse, "Waiting"
		message = later.why + "; next try at " + at.Add(later.after).UTC().Format(time.RFC3339)
	} else if _, refused := errors.AsType[*refusedError](failure); refused {
		status, reason, message = metav1.ConditionFalse, "Refused", failure.Error()+"; next try when the Service changes"
	} else if failure != nil {
		status, reason, message = metav1.ConditionFalse, "Failed", failure.Error()+"; the request is tried again"
	}
	meta.SetStatusCondition(&service.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, ObservedGeneration: service.Generation, Reason: reason, Message: message,
	})
	if address != "" {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	}
}
