// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvprotection

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
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "persistentvolume-protection-controller"

// Finalizer keeps a PersistentVolume from being removed.
// Source: k8s.io/kubernetes/pkg/volume/util, PVProtectionFinalizer.
const Finalizer = "kubernetes.io/pv-protection"

// Options changes how the controller works. There is nothing to change.
type Options struct{}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes"}, Verbs: []string{"get", "list", "watch", "update"}},
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, _ Options) (*controller.Controller, error) {
	r := &reconciler{volumes: cache.Informer[*corev1.PersistentVolume](h)}
	return controller.New(Name, r.reconcile, controller.For(r.volumes, predicate.Stays)), nil
}

type reconciler struct {
	volumes cache.SharedInformer[*corev1.PersistentVolume]
}

// reconcile adds the finalizer to a volume that lacks it, or removes it from one that is being
// deleted and not bound.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	volume, err := r.volumes.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	protected, deleting := slices.Contains(volume.Finalizers, Finalizer), volume.DeletionTimestamp != nil
	bound := volume.Status.Phase == corev1.VolumeBound
	if protected && (!deleting || bound) || !protected && deleting {
		return controller.Result{}, nil
	}
	changed := volume.DeepCopy()
	if protected {
		changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(f string) bool { return f == Finalizer })
	} else {
		changed.Finalizers = append(changed.Finalizers, Finalizer)
	}
	if _, err := r.volumes.Update(ctx, changed); err != nil && !client.AbsentAt(err, req.Key) {
		return controller.Result{}, fmt.Errorf("updating the finalizers of persistent volume %s: %w", req.Key, err)
	}
	return controller.Result{}, nil
}
