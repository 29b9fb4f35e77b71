// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/attachable"
)

// Annotation is on Nodes whose kubelet leaves attaching to this controller. The value does not
// matter.
const Annotation = attachable.Annotation

// AttachmentName returns the name of the VolumeAttachment of a volume at a node. External attachers
// and drivers find it by this name.
// Source: k8s.io/kubernetes/pkg/volume/csi, getAttachmentName.
func AttachmentName(handle, driver, node string) string {
	sum := sha256.Sum256([]byte(handle + driver + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

// attachmentOf returns the name of the VolumeAttachment of a volume by its unique name, "" for a
// volume without VolumeAttachments.
func attachmentOf(volume corev1.UniqueVolumeName, node string) string {
	driver, handle, ok := attachable.SplitCSI(volume)
	if !ok {
		return ""
	}
	return AttachmentName(handle, driver, node)
}

// ours reports whether this controller keeps the entries of a volume in the status of Nodes.
func ours(name corev1.UniqueVolumeName) bool {
	_, _, csi := attachable.SplitCSI(name)
	return csi || attachable.OfNoAttacher(name)
}
