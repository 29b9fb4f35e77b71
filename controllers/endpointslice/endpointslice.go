// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "endpointslice-controller"

// Manager is what the slices that this controller manages have in the label
// endpointslice.kubernetes.io/managed-by.
const Manager = "endpointslice-controller.k8s.io"

// source is whom events name, which users filter by. It is older than Name.
const source = "endpoint-slice-controller"

// How long a Service waits that failed. Source: k8s.io/kubernetes/pkg/controller/endpointslice,
// endpointslice_controller.go, which has it so long because one change of a Service
// can be many writes.
const (
	retryBase = time.Second
	retryMax  = 1000 * time.Second
)

var serviceResource = object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true}

// mostMaxEndpoints bounds Options.MaxEndpointsPerSlice.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/options, endpointslicecontroller.go.
const mostMaxEndpoints = 1000

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Services are worked on at a time.
	Workers int
	// MaxEndpointsPerSlice is how many endpoints a slice holds at most, 1 to 1000.
	MaxEndpointsPerSlice int
	// BatchPeriod is how long a Service waits after a change of one of its Pods or slices,
	// so that the changes that follow are written with it.
	BatchPeriod time.Duration
	// OnlyPreferClose has Services that prefer the same zone or node get no hints, as
	// upstream without the feature gate PreferSameTrafficDistribution.
	OnlyPreferClose bool
}

// Rights returns what the controller must be allowed to do.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "pods", "nodes"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		// Where the admission plugin OwnerReferencesPermissionEnforcement is on: the
		// slices' references to their Services block the deletion of these.
		{APIGroups: []string{""}, Resources: []string{"services/finalizers"}, Verbs: []string{"update"}},
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	if o.MaxEndpointsPerSlice < 1 || o.MaxEndpointsPerSlice > mostMaxEndpoints {
		return nil, fmt.Errorf("making %s: %d endpoints a slice; want 1 to %d", Name, o.MaxEndpointsPerSlice, mostMaxEndpoints)
	}
	r := &reconciler{
		services: cache.Informer[*corev1.Service](h),
		pods:     cache.Informer[*corev1.Pod](h),
		nodes:    cache.Informer[*corev1.Node](h),
		slices:   cache.Informer[*discoveryv1.EndpointSlice](h).With(client.MetadataAnswer()),
		events:   h.Recorder(source),
		most:     o.MaxEndpointsPerSlice,

		onlyPreferClose: o.OnlyPreferClose,
	}
	r.selection = serviceendpoints.NewSelection(r.services, r.pods)
	r.owned = endpointslices.NewOwned(r.slices, Manager)
	r.balanced = cache.NewIndex(r.services, wantsBalance)
	r.metrics = newMetrics(r)
	return r.metrics.Of(controller.New(Name, r.reconcile,
		controller.For(r.services),
		controller.Delayed(o.BatchPeriod, controller.Watches(r.pods, r.selection.Wakes, r.selection.Matters)),
		controller.Delayed(o.BatchPeriod, controller.Watches(r.slices, r.owned.Wakes, predicate.Later)),
		controller.Watches(r.nodes, r.balancedServices, predicate.Later, r.sharesChange),
		controller.Workers(o.Workers),
		controller.RateLimit(workqueue.Backoff[object.Key](retryBase, retryMax)),
	)), nil
}

type reconciler struct {
	services  cache.SharedInformer[*corev1.Service]
	pods      cache.SharedInformer[*corev1.Pod]
	nodes     cache.SharedInformer[*corev1.Node]
	slices    endpointslices.Informer
	events    *events.Recorder
	most      int                          // endpoints a slice
	balanced  cache.Index[*corev1.Service] // those that request it, under one value
	selection *serviceendpoints.Selection
	owned     *endpointslices.Owned
	triggers  serviceendpoints.Triggers
	balance   balance
	metrics   *sliceMetrics

	onlyPreferClose bool
}

// reconcile makes the slices of a Service show the Pods that it selects.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	err := r.run(ctx, req)
	r.metrics.ran(err)
	return controller.Result{}, err
}

func (r *reconciler) run(ctx context.Context, req controller.Request) error {
	service, err := r.services.Get(req.Key)
	if apierrors.IsNotFound(err) {
		r.triggers.Forget(req.Key)
		r.balance.forget(req.Key)
		r.metrics.Forget(req.Key)
		return nil // the slices go with their owner
	}
	if err != nil {
		return err
	}
	if !serviceendpoints.Selects(service) {
		serviceendpoints.BecauseUnselected(ctx, service)
		r.metrics.Forget(req.Key)
		return nil
	}
	err = r.service(ctx, service)
	// A conflict is not reported: the next run reads the newer state.
	if err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
		r.events.Warning(service, "FailedToUpdateEndpointSlices", actionUpdate,
			"Error updating Endpoint Slices for Service %s: %v", req.Key, err)
	}
	return err
}

func (r *reconciler) service(ctx context.Context, service *corev1.Service) error {
	key := object.KeyOf(service)
	pods, err := r.selection.Pods(service)
	if err != nil {
		return err
	}
	serviceendpoints.BecauseOfPods(ctx, service, pods)
	existing, err := r.owned.Of(key)
	if err != nil {
		return err
	}
	trigger, written := r.triggers.Next(service, pods)
	members, lost := r.members(service, pods)
	if r.onlyPreferClose {
		service = withoutPreferSame(service)
	}
	changes, notes, tallies := plan(service, members, existing, r.most, r.zonesFor(service))
	stamp(&changes, trigger)
	r.metrics.planned(key, tallies)
	if err := changes.Write(ctx, r.slices.Server(), r.metrics.Metrics); err != nil {
		return errors.Join(err, lost)
	}
	r.metrics.written(service, tallies)
	r.events.Record(service, r.balance.tell(key, notes)...)
	if lost == nil {
		written()
	}
	return lost
}

// members returns the Pods that are endpoints of a Service. A Pod on a Node that does not
// exist is left out, and is an error, unless the Service wants Pods in any state: such a
// Pod is about to go, or its Node has not been observed yet.
func (r *reconciler) members(service *corev1.Service, pods []*corev1.Pod) (members []member, lost error) {
	nodes := r.nodes.Snapshot()
	numbers := newPortNumbers(service)
	for _, pod := range pods {
		if !serviceendpoints.Reachable(pod) {
			continue
		}
		m := member{pod: pod}
		if node := nodes.Get(object.Key{Name: pod.Spec.NodeName}); node.Exists() {
			m.zone = node.Meta().Labels.Get(corev1.LabelTopologyZone)
		} else if !service.Spec.PublishNotReadyAddresses {
			lost = fmt.Errorf("leaving out Pod %s: its Node %q does not exist", object.KeyOf(pod), pod.Spec.NodeName)
			continue
		}
		m.ports, m.portsKey = numbers.of(pod)
		members = append(members, m)
	}
	return members, lost
}
