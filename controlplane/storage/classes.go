// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controlplane/internal/drivers"
	"github.com/setpoint-io/setpoint/internal/volumes"
)

// The StorageClasses that Run creates.
const (
	// DefaultClass is the default class. Its volumes are made when the first Pod that uses the
	// claim has a Node.
	DefaultClass = "standard"

	// ImmediateClass is the class whose volumes are made at once.
	ImmediateClass = "immediate"
)

// classes returns the StorageClasses.
func classes() []*storagev1.StorageClass {
	class := func(name string, mode storagev1.VolumeBindingMode, annotations map[string]string) *storagev1.StorageClass {
		return &storagev1.StorageClass{
			ObjectMeta:           metav1.ObjectMeta{Name: name, Annotations: annotations},
			Provisioner:          Driver,
			ReclaimPolicy:        new(corev1.PersistentVolumeReclaimDelete),
			VolumeBindingMode:    &mode,
			AllowVolumeExpansion: new(true),
		}
	}
	return []*storagev1.StorageClass{
		class(DefaultClass, storagev1.VolumeBindingWaitForFirstConsumer, map[string]string{volumes.IsDefaultClass: "true"}),
		class(ImmediateClass, storagev1.VolumeBindingImmediate, nil),
	}
}

// driverObject returns the CSIDriver. Its volumes have to be attached to a Node before they are
// mounted.
func driverObject() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: Driver},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: new(true)},
	}
}

// ensure creates the CSIDriver and the classes that do not exist, and tries again until that or
// until ctx ends. It reports false if ctx has ended. The CSIDriver comes first: volumes of a driver
// without one would be attached, too, but nothing would say so.
func ensure(ctx context.Context, d *drivers.Driver) bool {
	if _, ok := drivers.Ensure(ctx, d, driverObject()); !ok {
		return false
	}
	for _, class := range classes() {
		if _, ok := drivers.Ensure(ctx, d, class); !ok {
			return false
		}
	}
	return true
}
