// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package vacprotection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/protection"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "volumeattributesclass-protection-controller"

// Finalizer keeps a VolumeAttributesClass from being removed.
// Source: k8s.io/kubernetes/pkg/volume/util, VACProtectionFinalizer.
const Finalizer = "kubernetes.io/vac-protection"

// Options changes how the controller works. There is nothing to change.
type Options struct{}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{storagev1.GroupName}, Resources: []string{"volumeattributesclasses"}, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"persistentvolumes", "persistentvolumeclaims"}, Verbs: []string{"list", "watch"}},
		events.Rights(),
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, _ Options) (*controller.Controller, error) {
	classes := cache.Informer[*storagev1.VolumeAttributesClass](h)
	claims := cache.Informer[*corev1.PersistentVolumeClaim](h)
	volumes := cache.Informer[*corev1.PersistentVolume](h)
	u := users{
		claims:  cache.NewIndex(claims, named[*corev1.PersistentVolumeClaim](inClaims)),
		volumes: cache.NewIndex(volumes, named[*corev1.PersistentVolume](inVolumes)),
	}
	p := protection.Protection[*storagev1.VolumeAttributesClass]{
		Objects: classes, Finalizer: Finalizer, UsedBy: u.of, Recorder: h.Recorder(Name),
	}
	return controller.New(Name, p.Reconcile,
		controller.For(classes),
		controller.Watches(claims, keys[*corev1.PersistentVolumeClaim](inClaims), stopsToName[*corev1.PersistentVolumeClaim](inClaims)),
		controller.Watches(volumes, keys[*corev1.PersistentVolume](inVolumes), stopsToName[*corev1.PersistentVolume](inVolumes)),
	), nil
}

// users finds the objects that name a class.
type users struct {
	claims  cache.Index[*corev1.PersistentVolumeClaim]
	volumes cache.Index[*corev1.PersistentVolume]
}

// of returns the claims and the volumes that name a class.
func (u users) of(_ context.Context, class *storagev1.VolumeAttributesClass) ([]string, error) {
	var claims, volumes []string
	for key := range u.claims.Find(class.Name) {
		claims = append(claims, "PersistentVolumeClaim "+key.String())
	}
	for key := range u.volumes.Find(class.Name) {
		volumes = append(volumes, "PersistentVolume "+key.Name)
	}
	slices.Sort(claims)
	slices.Sort(volumes)
	return slices.Concat(claims, volumes), nil
}
