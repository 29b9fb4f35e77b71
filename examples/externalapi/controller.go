// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/controller/status"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

const (
	name      = "balancer-controller"
	class     = "example.com/balancer" // of the Services that are ours
	cleanup   = "example.com/balancer" // the finalizer: the balancer goes before the Service
	condition = "BalancerReady"

	// A worker that waits for an answer costs a goroutine, so there are many: as many
	// keys as hang at a time delay no other.
	workers = 100
	// After failures without advice of the provider, each key on its own.
	firstRetry, lastRetry = time.Second, 5 * time.Minute
)

type reconciler struct {
	provider *provider
	services cache.SharedInformer[*corev1.Service]
}

func newController(h controller.Host, p *provider) *controller.Controller {
	r := &reconciler{
		provider: p,
		services: cache.Informer[*corev1.Service](h),
	}
	return controller.New(name, r.reconcile,
		controller.For(r.services, changed),
		controller.Workers(workers), controller.Timeout(2*p.timeout+10*time.Second),
		controller.RateLimit(&workqueue.Exponential[object.Key]{Base: firstRetry, Max: lastRetry}))
}

// changed leaves out what makes no difference. Above all that is our own status: a run
// because of it would come before the time that the provider named.
func changed(e cache.Event[*corev1.Service]) bool {
	if e.Kind != cache.Updated {
		return true
	}
	before, errBefore := e.Old.Object()
	after, errAfter := e.New.Object()
	return errors.Join(errBefore, errAfter) != nil ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) || !before.DeletionTimestamp.Equal(after.DeletionTimestamp)
}

// ours reports whether a Service is to have a balancer.
func ours(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		s.Spec.LoadBalancerClass != nil && *s.Spec.LoadBalancerClass == class
}

// reconcile brings the balancer of one Service to its spec.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	service, err := r.services.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if !ours(service) {
		return r.remove(ctx, service)
	}
	// From here on there may be a balancer, so the Service must not go without us.
	if service, err = finalizer.Add(ctx, r.services, service, cleanup); err != nil {
		return controller.Result{}, err
	}
	want := balancer{Name: req.Key.String()}
	for _, port := range service.Spec.Ports {
		want.Ports = append(want.Ports, port.Port)
	}
	address, err := r.provider.ensure(ctx, string(service.UID), want)
	return r.conclude(ctx, service, address, err)
}

// remove deletes the balancer.
func (r *reconciler) remove(ctx context.Context, service *corev1.Service) (controller.Result, error) {
	if !slices.Contains(service.Finalizers, cleanup) {
		return controller.Result{}, nil
	}
	if err := r.provider.remove(ctx, string(service.UID)); err != nil {
		return r.conclude(ctx, service, "", err)
	}
	return controller.Result{}, finalizer.Remove(ctx, r.services, service, cleanup)
}

// conclude writes the result into the status, and decides when the Service is reconciled
// again.
func (r *reconciler) conclude(ctx context.Context, service *corev1.Service, address string, failure error) (controller.Result, error) {
	now := service.DeepCopy()
	describe(now, address, failure, time.Now())
	if err := status.Write(ctx, r.services, service, now); err != nil {
		return controller.Result{}, err
	}
	return next(failure)
}

// next is where the answers of an API become those of a Reconciler.
func next(failure error) (controller.Result, error) {
	if later, ok := errors.AsType[*laterError](failure); ok {
		return controller.Result{After: later.after}, nil
	}
	if _, refused := errors.AsType[*refusedError](failure); refused {
		return controller.Result{}, controller.Terminal(failure)
	}
	return controller.Result{}, failure
}

// describe sets the status: the address if there is one, and what is waited for if not.
func describe(service *corev1.Service, address string, failure error, at time.Time) {
	state, reason, message := metav1.ConditionTrue, "Ready", "the balancer leads here"
	if later, ok := errors.AsType[*laterError](failure); ok {
		state, reason = metav1.ConditionFalse, "Waiting"
		message = later.why + "; next try at " + at.Add(later.after).UTC().Format(time.RFC3339)
	} else if _, refused := errors.AsType[*refusedError](failure); refused {
		state, reason, message = metav1.ConditionFalse, "Refused", failure.Error()+"; next try when the Service changes"
	} else if failure != nil {
		state, reason, message = metav1.ConditionFalse, "Failed", failure.Error()+"; the request is tried again"
	}
	status.SetCondition(&service.Status.Conditions, service.Generation, condition, state, reason, message)
	if address != "" {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	}
}
