// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvprotection

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/protection"
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
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, _ Options) (*controller.Controller, error) {
	volumes := cache.Informer[*corev1.PersistentVolume](h)
	p := protection.Protection[*corev1.PersistentVolume]{
		Objects: volumes, Finalizer: Finalizer, UsedBy: usedBy, Recorder: h.Recorder(Name),
	}
	return controller.New(Name, p.Reconcile, controller.For(volumes)), nil
}

// usedBy returns the claim of a volume that is bound.
func usedBy(_ context.Context, volume *corev1.PersistentVolume) ([]string, error) {
	if volume.Status.Phase != corev1.VolumeBound {
		return nil, nil
	}
	if ref := volume.Spec.ClaimRef; ref != nil {
		return []string{"PersistentVolumeClaim " + ref.Namespace + "/" + ref.Name}, nil
	}
	return []string{"a claim that the volume does not name"}, nil
}
