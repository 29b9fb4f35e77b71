// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/attachable"
)

// source is a volume that may be attached to nodes.
type source struct {
	unique corev1.UniqueVolumeName
	name   string // of the PersistentVolume; in messages
	driver string // the CSI driver; "" for a plugin without an attacher

	migrated bool // the volume is one of a plugin in Kubernetes itself, which the driver has taken over

	// exclusive is set if the volume may be attached to one node only.
	exclusive bool

	// inline is the spec of a volume that stands in a Pod and has no PersistentVolume.
	inline *corev1.PersistentVolumeSpec
}

// ofVolume returns what a PersistentVolume is for the nodes. It reports false for volumes that
// are never attached.
func ofVolume(pv *corev1.PersistentVolume) (source, bool) {
	v, ok := attachable.OfPV(pv)
	if !ok {
		return source{}, false
	}
	return source{unique: v.Unique, name: pv.Name, driver: v.Driver, migrated: pv.Spec.CSI == nil && v.Driver != "",
		exclusive: exclusive(v.PV.Spec.AccessModes)}, true
}

// ofInline returns what a volume that stands in a Pod itself is for the nodes. A CSI volume there
// is ephemeral and is never attached.
func ofInline(volume *corev1.Volume, namespace string) (source, bool) {
	v, ok := attachable.OfInline(volume, namespace)
	if !ok {
		return source{}, false
	}
	s := source{unique: v.Unique, name: volume.Name, driver: v.Driver, migrated: v.Driver != ""}
	if v.PV != nil {
		s.name, s.exclusive, s.inline = v.PV.Name, exclusive(v.PV.Spec.AccessModes), &v.PV.Spec
	}
	return s, true
}

// exclusive reports whether access modes allow one node only. Without modes the driver decides.
// Source: k8s.io/kubernetes/pkg/volume/util, IsMultiAttachAllowed.
func exclusive(modes []corev1.PersistentVolumeAccessMode) bool {
	return len(modes) > 0 && !slices.Contains(modes, corev1.ReadWriteMany) && !slices.Contains(modes, corev1.ReadOnlyMany)
}
