// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/volumes"
)

// migratedClaim returns a claim that names the driver which has taken over its plugin, or nil if
// it is as it should be.
func migratedClaim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	driver := volumes.MigratedAnnotation(claim.Annotations, volumes.StorageProvisioner, volumes.BetaStorageProvisioner)
	if claim.Annotations[volumes.MigratedTo] == driver {
		return nil
	}
	next := claim.DeepCopy()
	next.Annotations = migrated(claim.Annotations, driver)
	return next
}

// migratedVolume is [migratedClaim] for a volume, and for the finalizer that keeps a volume of a
// plugin until the plugin has deleted what it stands for. The finalizer is for volumes that were
// made for a claim and are to be deleted with it.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, modifyDeletionFinalizers.
func migratedVolume(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	driver := volumes.MigratedAnnotation(volume.Annotations, volumes.ProvisionedBy)
	finalizers := finalizersOf(volume)
	if volume.Annotations[volumes.MigratedTo] == driver && slices.Equal(finalizers, volume.Finalizers) {
		return nil
	}
	next := volume.DeepCopy()
	next.Annotations = migrated(volume.Annotations, driver)
	next.Finalizers = finalizers
	return next
}

// migrated returns annotations that name a driver, or none if it is "".
func migrated(annotations map[string]string, driver string) map[string]string {
	next := maps.Clone(annotations)
	if driver == "" {
		delete(next, volumes.MigratedTo)
		return next
	}
	if next == nil {
		next = map[string]string{}
	}
	next[volumes.MigratedTo] = driver
	return next
}

// finalizersOf returns the finalizers that a volume should have.
func finalizersOf(volume *corev1.PersistentVolume) []string {
	plugin := volume.Annotations[volumes.ProvisionedBy]
	without := func(name string, from []string) []string {
		if !slices.Contains(from, name) {
			return from
		}
		return slices.DeleteFunc(slices.Clone(from), func(f string) bool { return f == name })
	}
	switch {
	case !volumes.IsInTree(plugin):
		return volume.Finalizers // static, or of a driver that looks after them itself
	case volumes.DriverOf(plugin) != "":
		return without(volumes.InTreeFinalizer, volume.Finalizers)
	}
	finalizers := without(volumes.ExternalFinalizer, volume.Finalizers)
	switch volume.Spec.PersistentVolumeReclaimPolicy {
	case corev1.PersistentVolumeReclaimDelete:
		// The API allows no new finalizer on an object that is being deleted.
		if !slices.Contains(finalizers, volumes.InTreeFinalizer) && volume.DeletionTimestamp == nil {
			finalizers = append(slices.Clone(finalizers), volumes.InTreeFinalizer)
		}
	case corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimRecycle:
		finalizers = without(volumes.InTreeFinalizer, finalizers)
	}
	return finalizers
}
