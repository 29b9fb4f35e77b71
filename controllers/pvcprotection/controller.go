// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/protection"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "persistentvolumeclaim-protection-controller"

// Finalizer keeps a PersistentVolumeClaim from being removed.
// Source: k8s.io/kubernetes/pkg/volume/util, PVCProtectionFinalizer.
const Finalizer = "kubernetes.io/pvc-protection"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// OmitUnused leaves out the condition Unused, as Kubernetes before 1.37 does.
	OmitUnused bool
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	r := &reconciler{
		Options: o,
		claims:  cache.Informer[*corev1.PersistentVolumeClaim](h),
		pods:    cache.Informer[*corev1.Pod](h),
		live:    map[string]liveList{},
	}
	r.byClaim = volumes.PodsByClaim(r.pods)
	r.protection = protection.Protection[*corev1.PersistentVolumeClaim]{
		Objects: r.claims, Finalizer: Finalizer, UsedBy: r.usedBy, Recorder: h.Recorder(Name),
	}
	return controller.New(Name, r.reconcile,
		controller.For(r.claims),
		controller.Watches(r.pods, func(pod cache.Item[*corev1.Pod], add func(object.Key)) {
			_ = volumes.ClaimKeys(pod, add) // the index has logged a Pod that cannot be decoded
		}),
	), nil
}

// reconciler has one worker, as upstream's: live and behind need no lock.
type reconciler struct {
	Options
	claims     cache.SharedInformer[*corev1.PersistentVolumeClaim]
	pods       cache.SharedInformer[*corev1.Pod]
	byClaim    cache.Index[*corev1.Pod]
	protection protection.Protection[*corev1.PersistentVolumeClaim]
	live       map[string]liveList // by namespace
	behind     bool                // in this run, the server had a Pod that uses the claim, and the cache had none
}

// reconcile takes the next step of one claim.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	r.behind = false
	result, err := r.step(ctx, req)
	if err == nil && r.behind {
		result.After = controllers.Lagging
	}
	return result, err
}

// step writes the condition of a bound claim, or else its finalizer. The condition of a new
// claim follows when the cache shows the claim with its finalizer.
func (r *reconciler) step(ctx context.Context, req controller.Request) (controller.Result, error) {
	claim, err := r.claims.Get(req.Key)
	if err != nil || r.OmitUnused || !inService(claim) {
		return r.protection.Reconcile(ctx, req)
	}
	if err = r.markUnused(ctx, claim); client.AbsentAt(err, req.Key) {
		err = nil
	}
	return controller.Result{}, err
}

// inService reports whether a claim is bound and protected, and stays.
func inService(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimBound && slices.Contains(claim.Finalizers, Finalizer)
}

// usedBy returns the Pods that keep a claim from being removed: those in the cache, or else those
// that the server has. The event of their end enqueues the claim again. If the claim has changed
// since the cache showed it, removing its finalizer is a conflict, and the claim runs again.
func (r *reconciler) usedBy(ctx context.Context, claim *corev1.PersistentVolumeClaim) ([]string, error) {
	users, err := r.cached(claim, keeps)
	if err != nil || len(users) > 0 {
		return users, err
	}
	return r.onServer(ctx, claim, keeps)
}

// cached returns the Pods in the cache that use a claim in some way.
func (r *reconciler) cached(claim *corev1.PersistentVolumeClaim, used usage) ([]string, error) {
	var users []string
	for key, item := range r.byClaim.Find(object.KeyOf(claim).String()) {
		pod, err := item.Object()
		if err != nil {
			return nil, fmt.Errorf("reading Pod %s: %w", key, err)
		}
		if used(pod, claim) {
			users = append(users, "Pod "+pod.Name)
		}
	}
	slices.Sort(users)
	return users, nil
}
