// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/status"
)

const (
	name      = "website-controller"
	hostsFile = "example.com/hosts-file" // the entry outside of the cluster has to go first
	ready     = "Ready"
)

type reconciler struct {
	hosts hosts

	sites cache.SharedInformer[*Website]

	pages       *owned.Applier[*corev1.ConfigMap]
	deployments *owned.Applier[*appsv1.Deployment]
	services    *owned.Applier[*corev1.Service]
}

func newController(h controller.Host, outside hosts) *controller.Controller {
	sites := cache.Informer[*Website](h)
	// Only what is labelled as ours: there may be many ConfigMaps of others.
	pages := cache.Informer[*corev1.ConfigMap](h, cache.WithLabels(labelled))
	deployments := cache.Informer[*appsv1.Deployment](h, cache.WithLabels(labelled))
	services := cache.Informer[*corev1.Service](h, cache.WithLabels(labelled))
	r := &reconciler{
		hosts:       outside,
		sites:       sites,
		pages:       owned.NewApplier(pages, name),
		deployments: owned.NewApplier(deployments, name),
		services:    owned.NewApplier(services, name),
	}
	return controller.New(name, r.reconcile,
		controller.For(sites), controller.Owns(pages), controller.Owns(deployments), controller.Owns(services),
		controller.Workers(4))
}

// reconcile makes one Website as it should be.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	site, err := r.sites.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if site.DeletionTimestamp != nil {
		if err := r.hosts.remove(site); err != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, finalizer.Remove(ctx, r.sites, site, hostsFile)
	}
	if site, err = finalizer.Add(ctx, r.sites, site, hostsFile); err != nil {
		return controller.Result{}, err
	}
	now := site.DeepCopy()
	err = r.serve(ctx, now)
	describe(now, err)
	return controller.Result{}, errors.Join(err, status.Write(ctx, r.sites, site, now))
}

// serve writes the objects that a Website consists of, and its status.
func (r *reconciler) serve(ctx context.Context, site *Website) error {
	if _, err := r.pages.Apply(ctx, site, page(site)); err != nil {
		return err
	}
	deployment, err := r.deployments.Apply(ctx, site, deployment(site))
	if err != nil {
		return err
	}
	site.Status.Available = deployment.Status.AvailableReplicas
	service, err := r.services.Apply(ctx, site, service(site))
	if err != nil {
		return err
	}
	site.Status.Address = service.Spec.ClusterIP
	return r.hosts.set(site, service.Spec.ClusterIP)
}

// describe sets the condition Ready, for the spec that was reconciled.
func describe(site *Website, err error) {
	state, reason := metav1.ConditionTrue, "Serving"
	message := fmt.Sprintf("%d of %d replicas are available", site.Status.Available, site.Spec.Replicas)
	switch {
	case err != nil:
		state, reason, message = metav1.ConditionFalse, "Failed", err.Error()
	case site.Status.Available < site.Spec.Replicas:
		state, reason = metav1.ConditionFalse, "Starting"
	}
	status.SetCondition(&site.Status.Conditions, site.Generation, ready, state, reason, message)
}
