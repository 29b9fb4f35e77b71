// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	name      = "website-controller"
	finalizer = "example.com/hosts-file" // the entry outside of the cluster has to go first
	ready     = "Ready"
)

type reconciler struct {
	client.Client

	hosts hosts
	live  client.Reader
}

func addController(mgr ctrl.Manager, outside hosts) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&Website{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(&reconciler{Client: mgr.GetClient(), hosts: outside, live: mgr.GetAPIReader()})
}

// Reconcile makes one Website as it should be.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	site := &Website{}
	if err := r.Get(ctx, req.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if site.DeletionTimestamp != nil {
		if err := r.hosts.remove(site); err != nil {
			return ctrl.Result{}, err
		}
		before := site.DeepCopy()
		if !controllerutil.RemoveFinalizer(site, finalizer) {
			return ctrl.Result{}, nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return ctrl.Result{}, client.IgnoreNotFound(r.Patch(ctx, site, patch))
	}
	before := site.DeepCopy()
	if controllerutil.AddFinalizer(site, finalizer) {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Patch(ctx, site, patch); err != nil {
			return ctrl.Result{}, err
		}
	}
	was := site.DeepCopy()
	err := r.serve(ctx, site)
	describe(site, err)
	if equality.Semantic.DeepEqual(was, site) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, errors.Join(err, r.Status().Update(ctx, site))
}

// serve makes what a Website consists of, and notes in its status what there is.
func (r *reconciler) serve(ctx context.Context, site *Website) error {
	if err := r.apply(ctx, site, page(site)); err != nil {
		return err
	}
	deployment := deployment(site)
	if err := r.apply(ctx, site, deployment); err != nil {
		return err
	}
	site.Status.Available = deployment.Status.AvailableReplicas
	service := service(site)
	if err := r.apply(ctx, site, service); err != nil {
		return err
	}
	site.Status.Address = service.Spec.ClusterIP
	return r.hosts.set(site, service.Spec.ClusterIP)
}

// apply applies the fields that are set in o, unless the object has another owner, and
// leaves the result in o.
func (r *reconciler) apply(ctx context.Context, site *Website, o client.Object) error {
	kind, err := apiutil.GVKForObject(o, r.Scheme())
	if err != nil {
		return err
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(kind)
	err = r.live.Get(ctx, client.ObjectKeyFromObject(o), there)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil && !metav1.IsControlledBy(there, site) {
		return fmt.Errorf("applying %s %s: there is one already, and %s does not manage it", kind.Kind, o.GetName(), site.Name)
	}
	if err := controllerutil.SetControllerReference(site, o, r.Scheme()); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return err
	}
	config := &unstructured.Unstructured{Object: content}
	config.SetGroupVersionKind(kind)
	err = r.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), client.FieldOwner(name), client.ForceOwnership)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(config.Object, o)
}

// describe sets the condition Ready, for the spec that was reconciled.
func describe(site *Website, err error) {
	status, reason := metav1.ConditionTrue, "Serving"
	message := fmt.Sprintf("%d of %d replicas are available", site.Status.Available, site.Spec.Replicas)
	switch {
	case err != nil:
		status, reason, message = metav1.ConditionFalse, "Failed", err.Error()
	case site.Status.Available < site.Spec.Replicas:
		status, reason = metav1.ConditionFalse, "Starting"
	}
	meta.SetStatusCondition(&site.Status.Conditions, metav1.Condition{
		Type: ready, Status: status, ObservedGeneration: site.Generation, Reason: reason, Message: message,
	})
}
