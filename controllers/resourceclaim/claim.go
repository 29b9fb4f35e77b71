// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/devices"
	"github.com/setpoint-io/setpoint/object"
)

// reconcileClaim frees one claim of the Pods that do not need it any more.
func (r *reconciler) reconcileClaim(ctx context.Context, req controller.Request) (controller.Result, error) {
	claim, err := r.claims.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	released, unseen, err := r.releasedBy(ctx, claim)
	if err != nil {
		return controller.Result{}, err
	}
	owner, err := r.ownerOf(ctx, claim)
	if err != nil {
		return controller.Result{}, err
	}
	p := decideClaim(claimView{
		claim: claim, owner: owner,
		released: func(c resourcev1.ResourceClaimConsumerReference) bool { return slices.Contains(released, c) },
	})
	for _, reason := range p.reasons {
		controller.Because(ctx, reason)
	}
	err = r.carryOut(ctx, claim, p)
	switch {
	case client.AbsentAt(err, req.Key):
		return controller.Result{}, nil // it went meanwhile
	case apierrors.IsConflict(err):
		return controller.Result{Again: true}, nil // a decision on its new state follows
	case unseen:
		return controller.Result{After: controllers.Lagging}, err
	}
	return controller.Result{}, err
}

// releasedBy returns the Pods and PodGroups of status.reservedFor that do not need the claim any more. unseen says that
// another one needs it, and that the cache does not show that one.
func (r *reconciler) releasedBy(ctx context.Context, claim *resourcev1.ResourceClaim) (all []resourcev1.ResourceClaimConsumerReference, unseen bool, err error) {
	for _, consumer := range claim.Status.ReservedFor {
		var over, hidden bool
		switch {
		case devices.IsPod(consumer):
			over, hidden, err = r.over(ctx, claim.Namespace, consumer)
		case r.SharedClaims && devices.IsGroup(consumer):
			over, hidden, err = r.groupOver(ctx, claim.Namespace, consumer)
		}
		if err != nil {
			return nil, false, fmt.Errorf("reading %s/%s of %s, which the claim is reserved for: %w", claim.Namespace, consumer.Name, consumer.Resource, err)
		}
		if over {
			all = append(all, consumer)
		}
		unseen = unseen || hidden
	}
	return all, unseen, nil
}

// over reports whether a Pod has ended or is gone. The server answers for a Pod that the cache does not show, or shows
// another one in place of: the scheduler may have reserved the claim for a Pod that was created just now. unseen says that
// this Pod is not over, and that the cache does not show it.
func (r *reconciler) over(ctx context.Context, namespace string, consumer resourcev1.ResourceClaimConsumerReference) (over, unseen bool, err error) {
	if r.gone.has(consumer.UID) {
		return true, false, nil
	}
	key := object.Key{Namespace: namespace, Name: consumer.Name}
	pod, err := r.pods.Get(key)
	if apierrors.IsNotFound(err) || err == nil && pod.UID != consumer.UID {
		unseen = true
		if pod, err = r.pods.Server().Get(ctx, key); client.AbsentAt(err, key) {
			return true, false, nil
		}
	}
	if err != nil {
		return false, false, err
	}
	over = pod.UID != consumer.UID || devices.Done(pod)
	return over, unseen && !over, nil
}

// ownerOf returns the Pod with the name of the Pod that a claim was made for, or nil. If the cache has another Pod of that
// name, the server answers: the cache may still show the one before.
func (r *reconciler) ownerOf(ctx context.Context, claim *resourcev1.ResourceClaim) (*corev1.Pod, error) {
	ref := metav1.GetControllerOfNoCopy(claim)
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" {
		return nil, nil
	}
	key := object.Key{Namespace: claim.Namespace, Name: ref.Name}
	pod, err := r.pods.Get(key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || pod.UID == ref.UID || r.gone.has(ref.UID) {
		return pod, err
	}
	if pod, err = r.pods.Server().Get(ctx, key); client.AbsentAt(err, key) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Pod %s, which the claim may have been made for: %w", key, err)
	}
	return pod, nil
}

// carryOut makes the writes of a plan. Each carries the version that the one before it made.
func (r *reconciler) carryOut(ctx context.Context, claim *resourcev1.ResourceClaim, p claimPlan) error {
	var err error
	if p.write {
		next := claim.DeepCopy()
		next.Status.ReservedFor = p.reservedFor
		if p.deallocate {
			next.Status.Allocation = nil
		}
		if claim, err = r.claims.UpdateStatus(ctx, next); err != nil {
			return fmt.Errorf("removing reservations from claim %s: %w", next.Name, err)
		}
	}
	if p.unprotect {
		next := claim.DeepCopy()
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
		if claim, err = r.claims.Update(ctx, next); err != nil {
			return fmt.Errorf("removing the finalizer of claim %s: %w", next.Name, err)
		}
	}
	if p.remove {
		err = r.claims.Delete(ctx, object.KeyOf(claim), client.IfUID(claim.UID), client.IfVersion(object.Version(claim.ResourceVersion)))
		if err != nil {
			return fmt.Errorf("deleting claim %s, whose Pod has ended: %w", claim.Name, err)
		}
	}
	return nil
}
