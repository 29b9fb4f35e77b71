// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/internal/eviction"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "device-taint-eviction-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Pods are worked on at a time, and how many DeviceTaintRules.
	Workers int
	// NoRules leaves DeviceTaintRules out, as Kubernetes before 1.37 does.
	NoRules bool
	// SharedClaims evicts Pods for the devices of claims that the Pods of a PodGroup share.
	SharedClaims bool
}

// Rights returns what the controller must be allowed to do. The caller owns the result. A Pod or
// a rule is read where the answer to a write of it was lost.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"resourceclaims", "resourceslices"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"devicetaintrules"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"devicetaintrules/status"}, Verbs: []string{"patch"}},
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it. It is a prometheus.Collector as well.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	metrics := &controllers.Metrics{}
	r := &reconciler{
		pods:      cache.Informer[*corev1.Pod](h).With(client.MetadataAnswer()),
		world:     newWorld(h, o.NoRules),
		groups:    o.SharedClaims,
		recorder:  h.Recorder(Name),
		deletions: eviction.DeletionsOf(metrics, "device_taint_eviction_controller"),
	}
	r.users = devices.UsersOf(r.pods)
	pods := controller.New(Name, r.reconcilePod,
		controller.For(r.pods, r.concerns),
		controller.Watches(r.world.claims, r.podsOfClaim, reservedOrAllocated),
		controller.Watches(r.world.slices, r.podsOfSlice, taintsChanged),
		controller.Workers(o.Workers),
	)
	if o.NoRules {
		return metrics.Of(pods), nil
	}
	pods.Feed("devicetaintrules", r.feedRules)
	rules := controller.New(Name+"-rules", r.reconcileRule,
		controller.For(r.world.rules, predicate.GenerationChanged),
		controller.Reads(r.pods), controller.Reads(r.world.claims), controller.Reads(r.world.slices),
		controller.Workers(o.Workers),
	)
	r.updateRule = func(rule object.Key) { rules.Queue().AddAfter(rule, statusPeriod) }
	return metrics.Of(controller.Join(Name, pods, rules)), nil
}

type reconciler struct {
	pods     cache.SharedInformer[*corev1.Pod]
	groups   bool // SharedClaims
	users    devices.Users
	world    *world
	recorder *events.Recorder
	planned  planned
	evicted  evicted

	deletions *eviction.Deletions
	// updateRule has the status of a rule computed again, some time later. It is nil without rules.
	updateRule func(rule object.Key)
}

// feedRules enqueues the Pods of rules that come, change and go. The loop over Pods gets them in
// this way, and not as a source, because it would wait for the first list of a source.
func (r *reconciler) feedRules(ctx context.Context, add func(object.Key)) {
	registration, err := r.world.rules.AddHandler(func(e cache.Event[*resourcev1.DeviceTaintRule]) {
		if e.Kind == cache.Resync || !predicate.GenerationChanged(e) {
			return
		}
		if e.Old.Exists() && (e.Kind == cache.Deleted || e.Kind == cache.Replaced) {
			r.evicted.forget(e.Old.Meta().UID)
		}
		r.podsOfRule(e.Old, add)
		r.podsOfRule(e.New, add)
	}, cache.HandlerOptions{Name: Name, EveryStep: true})
	if err != nil {
		return // the informer has stopped, and the process with it
	}
	defer registration.Remove()
	<-ctx.Done()
}
