// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/endpointslices"
	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "endpointslice-mirroring-controller"

// Manager is what the slices that this controller manages have in the label
// endpointslice.kubernetes.io/managed-by.
const Manager = "endpointslicemirroring-controller.k8s.io"

// source is whom events name, which users filter by. It is older than Name.
const source = "endpoint-slice-mirroring-controller"

// How long Endpoints wait that failed. Source:
// k8s.io/kubernetes/pkg/controller/endpointslicemirroring.
const (
	retryBase = time.Second
	retryMax  = 100 * time.Second
)

// mostMaxEndpoints bounds Options.MaxEndpointsPerSubset: a slice holds no more.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/options, endpointslicemirroringcontroller.go.
const mostMaxEndpoints = 1000

var endpointsResource = object.Resource{Version: "v1", Plural: "endpoints", Kind: "Endpoints", Namespaced: true}

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Endpoints are worked on at a time.
	Workers int
	// MaxEndpointsPerSubset is how many addresses of a subset are mirrored at most,
	// 1 to 1000.
	MaxEndpointsPerSubset int
	// BatchPeriod is how long Endpoints wait after a change of them, of their Service or of
	// one of their slices, so that the changes that follow are written with it.
	BatchPeriod time.Duration
}

// Rights returns what the controller must be allowed to do.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "endpoints"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		// Where the admission plugin OwnerReferencesPermissionEnforcement is on: the
		// slices' references to their Endpoints block the deletion of these.
		{APIGroups: []string{""}, Resources: []string{"endpoints/finalizers"}, Verbs: []string{"update"}},
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	if o.MaxEndpointsPerSubset < 1 || o.MaxEndpointsPerSubset > mostMaxEndpoints {
		return nil, fmt.Errorf("making %s: %d endpoints a subset; want 1 to %d", Name, o.MaxEndpointsPerSubset, mostMaxEndpoints)
	}
	r := &reconciler{
		endpoints: cache.Informer[*corev1.Endpoints](h),
		services:  cache.Informer[*corev1.Service](h),
		slices:    cache.Informer[*discoveryv1.EndpointSlice](h).With(client.MetadataAnswer()),
		events:    h.Recorder(source),
		most:      o.MaxEndpointsPerSubset,
		metrics:   newMetrics(),
	}
	r.owned = endpointslices.NewOwned(r.slices, Manager)
	return r.metrics.Of(controller.New(Name, r.reconcile,
		controller.Delayed(o.BatchPeriod, controller.For(r.endpoints)),
		controller.Delayed(o.BatchPeriod, controller.Watches(r.services, controller.SameKey, selectorCameOrWent)),
		controller.Delayed(o.BatchPeriod, controller.Watches(r.slices, r.owned.Wakes)),
		controller.Workers(o.Workers),
		controller.RateLimit(workqueue.Backoff[object.Key](retryBase, retryMax)),
	)), nil
}

// selectorCameOrWent chooses Services that begin or cease to be ones without selector.
func selectorCameOrWent(e cache.Event[*corev1.Service]) bool { return without(e.Old) != without(e.New) }

// without reports whether there is a Service, and it has no selector.
func without(item cache.Item[*corev1.Service]) bool {
	if !item.Exists() {
		return false
	}
	service, err := item.Object()
	return err == nil && len(service.Spec.Selector) == 0
}

type reconciler struct {
	endpoints cache.SharedInformer[*corev1.Endpoints]
	services  cache.SharedInformer[*corev1.Service]
	slices    endpointslices.Informer
	events    *events.Recorder
	most      int // endpoints a subset
	owned     *endpointslices.Owned
	metrics   *mirrorMetrics
}

// reconcile makes the slices of Endpoints show what these do.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	defer r.metrics.took(time.Now())
	existing, err := r.owned.Of(req.Key)
	if err != nil {
		return controller.Result{}, err
	}
	endpoints, err := r.mirrored(ctx, req.Key)
	if err != nil {
		return controller.Result{}, err
	}
	if endpoints == nil {
		r.metrics.Forget(req.Key)
		changes := endpointslices.Changes{Delete: existing}
		return controller.Result{}, changes.Write(ctx, r.slices.Server(), r.metrics.Metrics)
	}
	changes, skipped, tally := plan(endpoints, existing, r.most)
	r.metrics.planned(req.Key, tally, skipped)
	r.tell(endpoints, skipped)
	return controller.Result{}, changes.Write(ctx, r.slices.Server(), r.metrics.Metrics)
}

// mirrored returns the Endpoints of that name, or nil if there are none or they are not
// mirrored. Endpoints are not mirrored if they are a lock, if a label excludes them, if
// they have no Service, or if their Service has a selector, and so slices of its own.
func (r *reconciler) mirrored(ctx context.Context, key object.Key) (*corev1.Endpoints, error) {
	item, service := r.endpoints.Snapshot().Get(key), r.services.Snapshot().Get(key)
	switch {
	case !item.Exists():
		return nil, nil //nolint:nilnil // there is no error without Endpoints, and no other error
	case item.Meta().Labels.Get(discoveryv1.LabelSkipMirror) == "true":
		because(ctx, codeExcluded, "the label {label} excludes the Endpoints from mirroring", "the label is removed", "label", discoveryv1.LabelSkipMirror)
		return nil, nil //nolint:nilnil // as above
	case !service.Exists():
		because(ctx, codeNoService, "the Endpoints have no Service of their name", "the Service is created")
		return nil, nil //nolint:nilnil // as above
	case !without(service): // as most are: endpointslice-controller writes their slices
		return nil, nil //nolint:nilnil // as above
	}
	endpoints, err := item.Object()
	if err != nil {
		return nil, err
	}
	if _, lock := endpoints.Annotations[serviceendpoints.LeaderElection]; lock {
		because(ctx, codeLock, "the Endpoints are a lock of leader election", "")
		return nil, nil //nolint:nilnil // as above
	}
	return endpoints, nil
}

// Codes of the reasons why Endpoints are not mirrored.
const (
	codeExcluded  = "MirroringExcluded"
	codeNoService = "NoService"
	codeLock      = "EndpointsAreALock"
)

// because states why Endpoints are not mirrored.
func because(ctx context.Context, code, text, ends string, params ...any) {
	controller.Because(ctx, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
}

// tell records what could not be mirrored.
func (r *reconciler) tell(endpoints *corev1.Endpoints, s skipped) {
	if s.invalid > 0 {
		r.events.Warning(endpoints, "InvalidIPAddress", "MirrorEndpoints",
			"Skipped %d invalid IP addresses when mirroring to EndpointSlices", s.invalid)
	}
	if s.tooMany > 0 {
		r.events.Warning(endpoints, "TooManyAddressesToMirror", "MirrorEndpoints",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped", r.most, s.tooMany+s.invalid)
	}
}
