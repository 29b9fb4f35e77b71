// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachable

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// Annotation is on Nodes whose kubelet leaves attaching volumes to the attach-detach controller. The
// value does not matter.
// Source: k8s.io/kubernetes/pkg/volume/util, ControllerManagedAttachAnnotation.
const Annotation = "volumes.kubernetes.io/controller-managed-attach-detach"

// Names of plugins whose volumes are attached, as unique names of volumes begin with them.
// Source: k8s.io/kubernetes/pkg/volume/{csi,fc,iscsi}.
const (
	pluginCSI   = "kubernetes.io/csi"
	pluginFC    = "kubernetes.io/fc"
	pluginISCSI = "kubernetes.io/iscsi"
)

// Volume is a volume that may be attached to nodes.
type Volume struct {
	Unique corev1.UniqueVolumeName
	Driver string // the CSI driver; "" for a plugin without an attacher

	// PV is the PersistentVolume with the source of the CSI driver: the one given, the translated
	// one, or one that was made of a volume in a Pod. It is nil for a volume of a plugin without an
	// attacher that stands in a Pod. It must not be changed.
	PV *corev1.PersistentVolume
}

// translator translates volumes of plugins that CSI drivers have taken over. It has no state.
var translator = csitranslation.New()

// OfPV returns what a PersistentVolume is for the nodes. It reports false for volumes that are
// never attached, such as those of NFS and of directories of a node.
func OfPV(pv *corev1.PersistentVolume) (Volume, bool) {
	if pv.Spec.CSI == nil && translator.IsPVMigratable(pv) {
		translated, err := translator.TranslateInTreePVToCSI(klog.Background(), pv)
		if err != nil {
			return Volume{}, false
		}
		pv = translated
	}
	v := Volume{PV: pv}
	switch {
	case pv.Spec.CSI != nil:
		v.Driver, v.Unique = pv.Spec.CSI.Driver, UniqueCSI(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)
	case pv.Spec.FC != nil:
		v.Unique = uniqueFC(pv.Spec.FC)
	case pv.Spec.ISCSI != nil:
		v.Unique = uniqueISCSI(pv.Spec.ISCSI.TargetPortal, pv.Spec.ISCSI.IQN, pv.Spec.ISCSI.Lun)
	}
	return v, v.Unique != ""
}

// OfInline returns what a volume that stands in a Pod itself is for the nodes. A CSI volume there
// is ephemeral and is never attached.
func OfInline(v *corev1.Volume, namespace string) (Volume, bool) {
	switch {
	case v.FC != nil:
		unique := uniqueFC(v.FC)
		return Volume{Unique: unique}, unique != ""
	case v.ISCSI != nil:
		return Volume{Unique: uniqueISCSI(v.ISCSI.TargetPortal, v.ISCSI.IQN, v.ISCSI.Lun)}, true
	case !translator.IsInlineMigratable(v):
		return Volume{}, false
	}
	pv, err := translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), v, namespace)
	if err != nil || pv.Spec.CSI == nil {
		return Volume{}, false
	}
	return Volume{Unique: UniqueCSI(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle), Driver: pv.Spec.CSI.Driver, PV: pv}, true
}

// UniqueCSI returns the unique name of a volume of a CSI driver, as it stands in the status of
// Nodes.
// Source: k8s.io/kubernetes/pkg/volume/csi, GetVolumeName.
func UniqueCSI(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(pluginCSI + "/" + driver + "^" + handle)
}

// SplitCSI returns driver and handle of a unique name of a CSI driver.
func SplitCSI(name corev1.UniqueVolumeName) (driver, handle string, ok bool) {
	rest, ok := strings.CutPrefix(string(name), pluginCSI+"/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "^")
}

// OfNoAttacher reports whether a unique name is that of a plugin whose volumes count as attached
// as soon as they are to be. The kubelet connects them.
func OfNoAttacher(name corev1.UniqueVolumeName) bool {
	return strings.HasPrefix(string(name), pluginFC+"/") || strings.HasPrefix(string(name), pluginISCSI+"/")
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
