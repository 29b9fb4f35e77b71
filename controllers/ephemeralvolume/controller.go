// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ephemeralvolume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "ephemeral-volume-controller"

// source is the source that the Events name, which users filter by, and failed is their reason.
// Source: k8s.io/kubernetes/pkg/controller/volume/ephemeral and volume/events.
const (
	source = "ephemeral_volume"
	failed = "FailedBinding"
)

// codeForeign is the code of the reason why a Pod does not get its claim.
const codeForeign = "ClaimOfAnother"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many Pods are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. The caller owns the result. Clusters
// with the admission plugin OwnerReferencesPermissionEnforcement require the right to
// pods/finalizers for the owner references of claims.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get", "list", "watch", "create"}},
		events.Rights(),
	}
}

// Controller is the loop with its metrics.
type Controller struct {
	*controller.Controller
	*creations
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		pods:      cache.Informer[*corev1.Pod](h),
		claims:    cache.Informer[*corev1.PersistentVolumeClaim](h).With(client.MetadataAnswer()),
		recorder:  h.Recorder(source),
		creations: new(creations),
	}
	r.byClaim = volumes.PodsByClaim(r.pods)
	loop := controller.New(Name, r.reconcile,
		controller.For(r.pods, isNew),
		controller.Watches(r.claims, r.podsOf, changesOwners),
		controller.Workers(o.Workers),
	)
	return &Controller{loop, r.creations}, nil
}

type reconciler struct {
	pods      cache.SharedInformer[*corev1.Pod]
	claims    cache.SharedInformer[*corev1.PersistentVolumeClaim]
	byClaim   cache.Index[*corev1.Pod]
	recorder  *events.Recorder
	creations *creations
}

// reconcile creates the claims that a Pod lacks. It tries all of them.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := r.pods.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if !podstate.Active(pod) {
		return controller.Result{}, nil
	}
	var result controller.Result
	var failures []error
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil {
			unseen, err := r.provide(ctx, pod, v)
			if unseen {
				result.After = controllers.Lagging
			}
			failures = append(failures, err)
		}
	}
	return result, errors.Join(failures...)
}

// provide sees to it that the claim of an ephemeral volume exists. unseen reports that a claim of
// another owner has its name, and that the cache does not show that claim.
func (r *reconciler) provide(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (unseen bool, err error) {
	key := object.Key{Namespace: pod.Namespace, Name: volumes.ClaimName(pod, v)}
	claim, err := r.claims.Get(key)
	missing := apierrors.IsNotFound(err)
	if missing {
		claim, err = r.create(ctx, pod, v)
	}
	switch {
	case client.NamespaceGone(err):
		return false, nil // the Pod goes too
	case err != nil:
		r.recorder.Warning(pod, failed, "Create", "ephemeral volume %s: %v", v.Name, err)
		return false, fmt.Errorf("providing ephemeral volume %s: %w", v.Name, err)
	case !metav1.IsControlledBy(claim, pod):
		r.refuse(ctx, pod, v, claim)
		return missing, nil
	}
	return false, nil
}

// create creates the claim of a volume, or returns the claim that has its name already.
func (r *reconciler) create(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (*corev1.PersistentVolumeClaim, error) {
	wanted := newClaim(pod, v)
	r.creations.attempts.Add(1)
	claim, err := r.claims.Create(ctx, wanted)
	if err == nil {
		return claim, nil
	}
	r.creations.failures.Add(1)
	if apierrors.IsAlreadyExists(err) {
		return r.claims.Server().Get(ctx, object.KeyOf(wanted))
	}
	return nil, fmt.Errorf("create PVC %s: %w", wanted.Name, err)
}

// refuse says that a claim is not the Pod's.
func (r *reconciler) refuse(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, claim *corev1.PersistentVolumeClaim) {
	r.recorder.Warning(pod, failed, "Create", "ephemeral volume %s: PVC %s was not created for pod %s (pod is not owner)",
		v.Name, object.KeyOf(claim), object.KeyOf(pod))
	controller.Because(ctx, controller.Reason{
		Code:   codeForeign,
		Text:   "the claim of the ephemeral volume {volume} is not created: {claim} exists, and the Pod does not own it",
		Params: controller.With("volume", v.Name, "claim", claim.Name),
		Ends:   "that claim is deleted",
	})
}

// newClaim returns the claim of an ephemeral volume.
func newClaim(pod *corev1.Pod, v *corev1.Volume) *corev1.PersistentVolumeClaim {
	template := v.Ephemeral.VolumeClaimTemplate
	if template == nil { // validation requires one
		template = &corev1.PersistentVolumeClaimTemplate{}
	}
	template = template.DeepCopy()
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: volumes.ClaimName(pod, v),
			Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
		},
		Spec: template.Spec,
	}
}
