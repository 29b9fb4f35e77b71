// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// source is a volume that may be attached to nodes.
type source struct {
	unique corev1.UniqueVolumeName
	name   string // of the PersistentVolume; in messages
	driver string // the CSI driver; "" for a plugin without an attacher

	// exclusive is set if the volume may be attached to one node only.
	exclusive bool

	// inline is the spec of a volume that stands in a Pod and has no PersistentVolume.
	inline *corev1.PersistentVolumeSpec
}

// translator translates volumes of plugins that CSI drivers have taken over. It has no state.
var translator = csitranslation.New()

// ofVolume returns what a PersistentVolume is for the nodes. It reports false for volumes that
// are never attached, such as those of NFS and of directories of a node.
func ofVolume(pv *corev1.PersistentVolume) (source, bool) {
	if pv.Spec.CSI == nil && translator.IsPVMigratable(pv) {
		translated, err := translator.TranslateInTreePVToCSI(klog.Background(), pv)
		if err != nil {
			return source{}, false
		}
		pv = translated
	}
	s := source{name: pv.Name, exclusive: exclusive(pv.Spec.AccessModes)}
	switch {
	case pv.Spec.CSI != nil:
		s.driver, s.unique = pv.Spec.CSI.Driver, uniqueCSI(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	case pv.Spec.FC != nil:
		s.unique = uniqueFC(pv.Spec.FC)
	case pv.Spec.ISCSI != nil:
		s.unique = uniqueISCSI(pv.Spec.ISCSI.TargetPortal, pv.Spec.ISCSI.IQN, pv.Spec.ISCSI.Lun)
	}
	return s, s.unique != ""
}

// ofInline returns what a volume that stands in a Pod itself is for the nodes. A CSI volume there
// is ephemeral and is never attached.
func ofInline(v *corev1.Volume, namespace string) (source, bool) {
	switch {
	case v.FC != nil:
		s := source{name: v.Name, unique: uniqueFC(v.FC)}
		return s, s.unique != ""
	case v.ISCSI != nil:
		return source{name: v.Name, unique: uniqueISCSI(v.ISCSI.TargetPortal, v.ISCSI.IQN, v.ISCSI.Lun)}, true
	case !translator.IsInlineMigratable(v):
		return source{}, false
	}
	pv, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), v, namespace)
	if err != nil || pv.Spec.CSI == nil {
		return source{}, false
	}
	return source{
		name: pv.Name, driver: pv.Spec.CSI.Driver, unique: uniqueCSI(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle),
		exclusive: exclusive(pv.Spec.AccessModes), inline: &pv.Spec,
	}, true
}

// exclusive reports whether access modes allow one node only. Without modes the driver decides.
// Source: k8s.io/kubernetes/pkg/volume/util, IsMultiAttachAllowed.
func exclusive(modes []corev1.PersistentVolumeAccessMode) bool {
	return len(modes) > 0 && !slices.Contains(modes, corev1.ReadWriteMany) && !slices.Contains(modes, corev1.ReadOnlyMany)
}

// uniqueFC returns the unique name of a Fibre Channel volume, "" if it has none.
// Source: k8s.io/kubernetes/pkg/volume/fc, GetVolumeName.
func uniqueFC(v *corev1.FCVolumeSource) corev1.UniqueVolumeName {
	switch {
	case len(v.TargetWWNs) > 0 && v.Lun != nil:
		return corev1.UniqueVolumeName(fmt.Sprintf("%s/%v:%v", pluginFC, v.TargetWWNs, *v.Lun))
	case len(v.WWIDs) > 0:
		return corev1.UniqueVolumeName(fmt.Sprintf("%s/%v", pluginFC, v.WWIDs))
	}
	return ""
}

// uniqueISCSI returns the unique name of an iSCSI volume.
// Source: k8s.io/kubernetes/pkg/volume/iscsi, GetVolumeName.
func uniqueISCSI(portal, iqn string, lun int32) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(fmt.Sprintf("%s/%v:%v:%v", pluginISCSI, portal, iqn, lun))
}
