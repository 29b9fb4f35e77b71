// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Annotation is on Nodes whose kubelet leaves attaching to this controller. The value does not
// matter.
// Source: k8s.io/kubernetes/pkg/volume/util, ControllerManagedAttachAnnotation.
const Annotation = "volumes.kubernetes.io/controller-managed-attach-detach"

// Names of plugins whose volumes are attached, as unique names of volumes begin with them.
// Source: k8s.io/kubernetes/pkg/volume/{csi,fc,iscsi}.
const (
	pluginCSI   = "kubernetes.io/csi"
	pluginFC    = "kubernetes.io/fc"
	pluginISCSI = "kubernetes.io/iscsi"
)

// AttachmentName returns the name of the VolumeAttachment of a volume at a node. External attachers
// and drivers find it by this name.
// Source: k8s.io/kubernetes/pkg/volume/csi, getAttachmentName.
func AttachmentName(handle, driver, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// uniqueCSI returns the unique name of a volume of a CSI driver, as it stands in the status of
// Nodes.
// Source: k8s.io/kubernetes/pkg/volume/csi, GetVolumeName.
func uniqueCSI(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(pluginCSI + "/" + driver + "^" + handle)
}

// splitCSI returns driver and handle of a unique name of a CSI driver.
func splitCSI(name corev1.UniqueVolumeName) (driver, handle string, ok bool) {
	rest, ok := strings.CutPrefix(string(name), pluginCSI+"/")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "^")
}

// attachmentOf returns the name of the VolumeAttachment of a volume by its unique name, "" for a
// volume without VolumeAttachments.
func attachmentOf(volume corev1.UniqueVolumeName, node string) string {
	driver, handle, ok := splitCSI(volume)
	if !ok {
		return ""
	}
	return AttachmentName(handle, driver, node)
}

// ofNoAttacher reports whether a unique name is that of a plugin whose volumes count as attached
// as soon as they are to be. The kubelet connects them.
func ofNoAttacher(name corev1.UniqueVolumeName) bool {
	return strings.HasPrefix(string(name), pluginFC+"/") || strings.HasPrefix(string(name), pluginISCSI+"/")
}

// ours reports whether this controller keeps the entries of a volume in the status of Nodes.
func ours(name corev1.UniqueVolumeName) bool {
	_, _, csi := splitCSI(name)
	return csi || ofNoAttacher(name)
}
