// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "endpoints-controller"

// source is whom events name, which users filter by, and what stands in the label
// managed-by. It is older than Name.
const source = "endpoint-controller"

// labelManagedBy marks the Endpoints that this controller has written.
// Source: k8s.io/kubernetes/pkg/controller/endpoint, LabelManagedBy.
const labelManagedBy = "endpoints.kubernetes.io/managed-by"

var endpointsResource = object.Resource{Version: "v1", Plural: "endpoints", Kind: "Endpoints", Namespaced: true}

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Services are worked on at a time.
	Workers int
	// BatchPeriod is how long a Service waits after a change of one of its Pods, so that
	// the changes that follow are written with it.
	BatchPeriod time.Duration
}

// Rights returns what the controller must be allowed to do.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"endpoints"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		services:  cache.Informer[*corev1.Service](h),
		pods:      cache.Informer[*corev1.Pod](h),
		endpoints: cache.Informer[*corev1.Endpoints](h).With(client.MetadataAnswer()),
		events:    h.Recorder(source),
	}
	r.selection = serviceendpoints.NewSelection(r.services, r.pods)
	return controller.New(Name, r.reconcile,
		controller.For(r.services),
		controller.Delayed(o.BatchPeriod, controller.Watches(r.pods, r.selection.Wakes, r.selection.Matters)),
		controller.Watches(r.endpoints, controller.SameKey, r.lostOrLeft),
		controller.Workers(o.Workers),
	), nil
}

// lostOrLeft chooses Endpoints that were deleted, and those that existed when the
// controller started, or that appear without their Service: it may have been deleted while no controller ran.
func (r *reconciler) lostOrLeft(e cache.Event[*corev1.Endpoints]) bool {
	return e.Kind == cache.Deleted || e.Initial || e.Kind == cache.Added && r.orphaned(e.New)
}

// orphaned reports whether Endpoints are without a Service, and were written by this controller. Those of a user
// may come before their Service, or before the cache shows it.
func (r *reconciler) orphaned(item cache.Item[*corev1.Endpoints]) bool {
	return item.Labels().Get(labelManagedBy) == source && !r.services.Snapshot().Get(item.Key()).Exists()
}

type reconciler struct {
	services  cache.SharedInformer[*corev1.Service]
	pods      cache.SharedInformer[*corev1.Pod]
	endpoints cache.SharedInformer[*corev1.Endpoints]
	events    *events.Recorder
	selection *serviceendpoints.Selection
	triggers  serviceendpoints.Triggers
}

// reconcile makes the Endpoints of a Service show the Pods that it selects.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	service, err := r.services.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.triggers.Forget(req.Key)
		return controller.Result{}, r.remove(ctx, req.Key)
	}
	if err != nil {
		return controller.Result{}, err
	}
	if !serviceendpoints.Selects(service) {
		serviceendpoints.BecauseUnselected(ctx, service)
		return controller.Result{}, nil
	}
	return controller.Result{}, r.service(ctx, service)
}

// remove deletes the Endpoints of a Service that is gone.
func (r *reconciler) remove(ctx context.Context, key object.Key) error {
	existing, err := r.endpoints.Get(key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, lock := existing.Annotations[serviceendpoints.LeaderElection]; lock || existing.DeletionTimestamp != nil {
		return nil
	}
	err = r.endpoints.Delete(ctx, key, client.IfUID(existing.UID))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the Endpoints of Service %s, which is gone: %w", key, err)
	}
	return nil
}

func (r *reconciler) service(ctx context.Context, service *corev1.Service) error {
	key := object.KeyOf(service)
	pods, err := r.selection.Pods(service)
	if err != nil {
		return err
	}
	serviceendpoints.BecauseOfPods(ctx, service, pods)
	trigger, written := r.triggers.Next(service, pods)
	existing, err := r.endpoints.Get(key)
	found := !apierrors.IsNotFound(err)
	if found && err != nil {
		return err
	}
	if !found {
		existing = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	}
	wanted := desired(service, pods, existing)
	if found && same(existing, wanted) {
		written()
		return nil
	}
	stamp(wanted, trigger)
	if found {
		_, err = r.endpoints.Update(ctx, wanted)
	} else {
		_, err = r.endpoints.Create(ctx, wanted)
	}
	switch {
	case err == nil, !found && client.NamespaceGone(err):
		written()
		return nil
	case apierrors.IsConflict(err), ctx.Err() != nil:
	case found:
		r.events.Warning(wanted, "FailedToUpdateEndpoint", "UpdateEndpoints", "Failed to update endpoint %s: %v", key, err)
	default:
		r.events.Warning(wanted, "FailedToCreateEndpoint", "CreateEndpoints", "Failed to create endpoint for service %s: %v", key, err)
	}
	return fmt.Errorf("writing the Endpoints of Service %s: %w", key, err)
}
