// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
)

// podsLabel is the label of a namespace that says how many Pods it may have.
const podsLabel = "example.com/pods"

// newManager returns a manager with the reconciler.
func newManager(config *rest.Config, o ctrl.Options) (ctrl.Manager, error) {
	o.NewCache = controllerruntime.NewCache
	o.NewClient = controllerruntime.NewClient
	mgr, err := ctrl.NewManager(config, o)
	if err != nil {
		return nil, err
	}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.Namespace{}).Owns(&corev1.ResourceQuota{}).Complete(&quotas{mgr.GetClient()})
}

// quotas gives each namespace that has the label a ResourceQuota of its number of Pods.
type quotas struct{ client client.Client }

// Reconcile brings the ResourceQuota of a namespace to what its label says.
func (q *quotas) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var namespace corev1.Namespace
	if err := q.client.Get(ctx, client.ObjectKey{Name: request.Name}, &namespace); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	label, ok := namespace.Labels[podsLabel]
	if !ok {
		return ctrl.Result{}, nil
	}
	pods, err := resource.ParseQuantity(label)
	if err != nil {
		return ctrl.Result{}, reconcile.TerminalError(fmt.Errorf("reading the label %s: %w", podsLabel, err)) // a retry reads the same
	}
	var quota corev1.ResourceQuota
	err = q.client.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: "pods"}, &quota)
	switch {
	case apierrors.IsNotFound(err):
		quota = corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "pods"}}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: pods}
		if err := ctrl.SetControllerReference(&namespace, &quota, q.client.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, q.client.Create(ctx, &quota)
	case err != nil:
		return ctrl.Result{}, err
	case quota.Spec.Hard.Pods().Cmp(pods) != 0:
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: pods}
		return ctrl.Result{}, q.client.Update(ctx, &quota)
	}
	return ctrl.Result{}, nil
}
