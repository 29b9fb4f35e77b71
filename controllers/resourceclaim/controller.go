// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "resourceclaim-controller"

// eventSource is whom Events name, which users filter by.
// Source: k8s.io/kubernetes/pkg/controller/resourceclaim.
const eventSource = "resource_claim"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Pods are worked on at a time, and how many claims.
	Workers int
	// NoAdminAccess refuses templates that request admin access to devices.
	NoAdminAccess bool
	// NoPrioritizedList refuses templates that request the first available of several devices.
	NoPrioritizedList bool
	// PodGroups reads the PodGroups of Pods. Without it, Pods that belong to one get no claims.
	PodGroups bool
	// SharedClaims makes the claims that the Pods of a PodGroup share. It needs PodGroups.
	SharedClaims bool
}

// Rights returns what the controller must be allowed to do. The caller owns the result. Servers
// from 1.36 on ask for resourceclaims/binding when allocation or reservations change.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"resourceclaims"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"resourceclaims/status", "resourceclaims/binding"}, Verbs: []string{"update"}},
		{APIGroups: []string{resourcev1.GroupName}, Resources: []string{"resourceclaimtemplates"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{schedulingv1beta1.GroupName}, Resources: []string{"podgroups"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{schedulingv1beta1.GroupName}, Resources: []string{"podgroups/status"}, Verbs: []string{"patch"}},
		events.Rights(),
	}
}

type reconciler struct {
	Options
	pods      cache.SharedInformer[*corev1.Pod]
	claims    cache.SharedInformer[*resourcev1.ResourceClaim]
	templates cache.SharedInformer[*resourcev1.ResourceClaimTemplate]
	users     devices.Users
	// groups are the PodGroups, if the options need them, and groupUsers those with claims.
	groups     cache.SharedInformer[*schedulingv1beta1.PodGroup]
	groupUsers cache.Index[*schedulingv1beta1.PodGroup]
	members    cache.Index[*corev1.Pod]
	gone       gone
	metrics    *claimMetrics
	recorder   *events.Recorder
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	o.SharedClaims = o.SharedClaims && o.PodGroups
	r := &reconciler{
		Options:   o,
		pods:      cache.Informer[*corev1.Pod](h),
		claims:    cache.Informer[*resourcev1.ResourceClaim](h),
		templates: cache.Informer[*resourcev1.ResourceClaimTemplate](h),
		recorder:  h.Recorder(eventSource),
	}
	r.users = devices.UsersOf(r.pods)
	r.metrics = newMetrics(r.claims)
	forClaims := []controller.Option{
		controller.For(r.claims, predicate.Stays),
		controller.Watches(r.pods, claimsOf, r.ends),
		controller.Workers(o.Workers),
	}
	forPods := []controller.Option{
		controller.For(r.pods, predicate.Stays, usesAny),
		controller.Watches(r.claims, r.podsOfClaim),
		controller.Watches(r.templates, r.podsOfTemplate),
		controller.Workers(o.Workers),
	}
	if o.PodGroups {
		r.watchGroups(h)
		forPods = append(forPods, controller.Watches(r.groups, r.podsOfGroup))
	}
	if !o.SharedClaims {
		return r.metrics.Of(controller.Join(Name, controller.New(Name, r.reconcileClaim, forClaims...), controller.New(Name+"-pods", r.reconcilePod, forPods...))), nil
	}
	forClaims = append(forClaims, controller.Watches(r.groups, claimsOfGroup, r.groupGoes))
	groups := controller.New(Name+"-podgroups", r.reconcileGroup,
		controller.For(r.groups, predicate.Stays),
		controller.Watches(r.claims, r.groupsOfClaim),
		controller.Watches(r.templates, r.groupsOfTemplate),
		controller.Workers(o.Workers),
	)
	return r.metrics.Of(controller.Join(Name, controller.New(Name, r.reconcileClaim, forClaims...), controller.New(Name+"-pods", r.reconcilePod, forPods...), groups)), nil
}

// usesAny chooses Pods with claims. A run reports a Pod that cannot be decoded.
func usesAny(e cache.Event[*corev1.Pod]) bool {
	pod, err := devices.WithClaims(e.New)
	return err != nil || pod != nil
}

// ends chooses the events after which a Pod does not need its claims any more, and remembers the
// Pods that are gone. It decodes no Pod without claims.
func (r *reconciler) ends(e cache.Event[*corev1.Pod]) bool {
	if e.Kind == cache.Deleted || e.Kind == cache.Replaced {
		pod, err := devices.WithClaims(e.Old)
		if err == nil && pod == nil {
			return false
		}
		r.gone.add(e.Old.Meta().UID)
		return true
	}
	pod, err := devices.WithClaims(e.New)
	return err != nil || pod != nil && devices.Done(pod)
}

// claimsOf adds the claims of a Pod.
func claimsOf(item cache.Item[*corev1.Pod], add func(object.Key)) {
	pod, err := devices.WithClaims(item)
	if err != nil || pod == nil {
		return // the index has logged the error
	}
	for _, c := range devices.ClaimsOf(pod) {
		if c.Name != "" {
			add(object.Key{Namespace: pod.Namespace, Name: c.Name})
		}
	}
}

// podsOfClaim adds the Pods that use a claim. A claim whose name is not in the status of its Pod
// yet starts no run: the run that makes the claim writes the name too. The claim of a PodGroup, which
// another loop makes, starts runs of all its Pods.
func (r *reconciler) podsOfClaim(item cache.Item[*resourcev1.ResourceClaim], add func(object.Key)) {
	for key := range r.users.OfClaim(item.Key()) {
		add(key)
	}
	if ref := item.Meta().Controller(); r.PodGroups && ref != nil && ref.Kind == "PodGroup" {
		for key := range r.members.Find(item.Key().Namespace + "/" + ref.Name) {
			add(key)
		}
	}
}

func (r *reconciler) podsOfTemplate(item cache.Item[*resourcev1.ResourceClaimTemplate], add func(object.Key)) {
	for key := range r.users.OfTemplate(item.Key()) {
		add(key)
	}
}
