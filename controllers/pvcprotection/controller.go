// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
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
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	r := &reconciler{
		Options: o,
		claims:  cache.Informer[*corev1.PersistentVolumeClaim](h),
		pods:    cache.Informer[*corev1.Pod](h),
	}
	r.byClaim = cache.NewIndex(r.pods, func(pod cache.Item[*corev1.Pod]) ([]string, error) {
		var keys []string
		err := claimKeys(pod, func(claim object.Key) { keys = append(keys, claim.String()) })
		return keys, err
	})
	return controller.New(Name, r.reconcile,
		controller.For(r.claims, predicate.Stays),
		controller.Watches(r.pods, func(pod cache.Item[*corev1.Pod], add func(object.Key)) {
			_ = claimKeys(pod, add) // the index has logged a Pod that cannot be decoded
		}),
	), nil
}

// claimKeys calls add with the key of each claim of a Pod.
func claimKeys(item cache.Item[*corev1.Pod], add func(object.Key)) error {
	pod, err := item.Object()
	if err != nil {
		return err
	}
	for _, name := range claimsOf(pod) {
		add(object.Key{Namespace: pod.Namespace, Name: name})
	}
	return nil
}

// reconciler has one worker, as upstream's: live needs no lock.
type reconciler struct {
	Options
	claims  cache.SharedInformer[*corev1.PersistentVolumeClaim]
	pods    cache.SharedInformer[*corev1.Pod]
	byClaim cache.Index[*corev1.Pod]
	live    liveList
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	claim, err := r.claims.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	protected := slices.Contains(claim.Finalizers, Finalizer)
	switch {
	case claim.DeletionTimestamp != nil && protected:
		err = r.release(ctx, claim)
	case claim.DeletionTimestamp != nil:
	case !protected:
		err = r.protect(ctx, claim)
	case claim.Status.Phase == corev1.ClaimBound && !r.OmitUnused:
		err = r.markUnused(ctx, claim)
	}
	if client.AbsentAt(err, req.Key) {
		err = nil
	}
	return controller.Result{}, err
}

// protect adds the finalizer. The condition follows when the claim is seen with it.
func (r *reconciler) protect(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	claim = claim.DeepCopy()
	claim.Finalizers = append(claim.Finalizers, Finalizer)
	if _, err := r.claims.Update(ctx, claim); err != nil {
		return fmt.Errorf("adding the finalizer of persistent volume claim %s: %w", object.KeyOf(claim), err)
	}
	return nil
}

// release removes the finalizer, unless a Pod keeps the claim. The event of that Pod's end
// enqueues the claim again; where the claim has changed since the cache showed it, its own does.
func (r *reconciler) release(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	kept, err := r.cached(claim, keeps)
	if err != nil || kept {
		return err
	}
	if !r.live.released(claim) {
		if r.live, err = r.listPods(ctx, claim.Namespace); err != nil {
			return err
		}
		if !r.live.released(claim) {
			return nil
		}
	}
	claim = claim.DeepCopy()
	claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == Finalizer })
	if _, err := r.claims.Update(ctx, claim); err != nil {
		return fmt.Errorf("removing the finalizer of persistent volume claim %s: %w", object.KeyOf(claim), err)
	}
	return nil
}

// cached reports whether a Pod in the cache uses a claim in some way.
func (r *reconciler) cached(claim *corev1.PersistentVolumeClaim, used func(*corev1.Pod, *corev1.PersistentVolumeClaim) bool) (bool, error) {
	for key, item := range r.byClaim.Find(object.KeyOf(claim).String()) {
		pod, err := item.Object()
		if err != nil {
			return false, fmt.Errorf("reading Pod %s: %w", key, err)
		}
		if used(pod, claim) {
			return true, nil
		}
	}
	return false, nil
}
