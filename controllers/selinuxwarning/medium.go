// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/volumes"
)

// medium is the storage behind a volume, which several Pods may use. The zero medium is storage
// that no two Pods can conflict over: that of one Pod alone, or of a plugin that mounts nothing
// with a label.
type medium struct {
	name   string // unique among all media
	driver string // the CSI driver, which says whether it mounts with labels; "" if the plugin always does
}

// Names of the plugins of Kubernetes that always mount with labels.
// Source: k8s.io/kubernetes/pkg/volume/fc and iscsi, SupportsSELinuxContextMount.
const (
	fibreChannelPlugin = "kubernetes.io/fc"
	iscsiPlugin        = "kubernetes.io/iscsi"
)

// mediumOf returns the medium of a volume of the cluster.
func mediumOf(volume *corev1.PersistentVolume) medium {
	switch s := &volume.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		return ofDriver(s.CSI.Driver, s.CSI.VolumeHandle)
	case s.FC != nil:
		return ofFibreChannel(s.FC)
	case s.ISCSI != nil:
		return ofISCSI(s.ISCSI.TargetPortal, s.ISCSI.IQN, s.ISCSI.Lun)
	case s.AWSElasticBlockStore != nil:
		return ofPlugin("kubernetes.io/aws-ebs", blockStoreID(s.AWSElasticBlockStore.VolumeID))
	case s.AzureDisk != nil:
		return ofPlugin("kubernetes.io/azure-disk", s.AzureDisk.DataDiskURI)
	case s.AzureFile != nil:
		return ofPlugin("kubernetes.io/azure-file", strings.Join([]string{s.AzureFile.SecretName, s.AzureFile.ShareName, volume.Name}, "#"))
	case s.Cinder != nil:
		return ofPlugin("kubernetes.io/cinder", s.Cinder.VolumeID)
	case s.GCEPersistentDisk != nil:
		zones := cmp.Or(volume.Labels[corev1.LabelFailureDomainBetaZone], volume.Labels[corev1.LabelTopologyZone])
		return ofPlugin("kubernetes.io/gce-pd", diskHandle(zones, s.GCEPersistentDisk.PDName))
	case s.PortworxVolume != nil:
		return ofPlugin("kubernetes.io/portworx-volume", s.PortworxVolume.VolumeID)
	case s.VsphereVolume != nil:
		return ofPlugin("kubernetes.io/vsphere-volume", s.VsphereVolume.VolumePath)
	}
	return medium{}
}

// mediumOfInline returns the medium of a volume whose source is in the Pod itself. A CSI volume of
// this kind belongs to its Pod alone.
func mediumOfInline(pod *corev1.Pod, v *corev1.Volume) medium {
	switch s := &v.VolumeSource; {
	case s.FC != nil:
		return ofFibreChannel(s.FC)
	case s.ISCSI != nil:
		return ofISCSI(s.ISCSI.TargetPortal, s.ISCSI.IQN, s.ISCSI.Lun)
	case s.AWSElasticBlockStore != nil:
		return ofPlugin("kubernetes.io/aws-ebs", blockStoreID(s.AWSElasticBlockStore.VolumeID))
	case s.AzureDisk != nil:
		return ofPlugin("kubernetes.io/azure-disk", s.AzureDisk.DataDiskURI)
	case s.AzureFile != nil:
		return ofPlugin("kubernetes.io/azure-file", strings.Join([]string{s.AzureFile.SecretName, s.AzureFile.ShareName, v.Name, pod.Namespace}, "#"))
	case s.Cinder != nil:
		return ofPlugin("kubernetes.io/cinder", s.Cinder.VolumeID)
	case s.GCEPersistentDisk != nil:
		return ofPlugin("kubernetes.io/gce-pd", diskHandle("", s.GCEPersistentDisk.PDName))
	case s.PortworxVolume != nil:
		return ofPlugin("kubernetes.io/portworx-volume", s.PortworxVolume.VolumeID)
	case s.VsphereVolume != nil:
		return ofPlugin("kubernetes.io/vsphere-volume", s.VsphereVolume.VolumePath)
	}
	return medium{}
}

// ofDriver returns the medium that a CSI driver knows by a handle.
// Source of the name: k8s.io/kubernetes/pkg/volume/csi, GetVolumeName.
func ofDriver(driver, handle string) medium {
	return medium{name: "kubernetes.io/csi/" + driver + "^" + handle, driver: driver}
}

// ofPlugin returns the medium of a plugin that a CSI driver has taken over.
// Source of the handles: k8s.io/csi-translation-lib/plugins.
func ofPlugin(plugin, handle string) medium { return ofDriver(volumes.DriverOf(plugin), handle) }

// ofFibreChannel returns the medium of a Fibre Channel volume.
// Source of the name: k8s.io/kubernetes/pkg/volume/fc, GetVolumeName.
func ofFibreChannel(s *corev1.FCVolumeSource) medium {
	switch {
	case len(s.TargetWWNs) != 0 && s.Lun != nil:
		return medium{name: fmt.Sprintf("%s/%v:%d", fibreChannelPlugin, s.TargetWWNs, *s.Lun)}
	case len(s.WWIDs) != 0:
		return medium{name: fmt.Sprintf("%s/%v", fibreChannelPlugin, s.WWIDs)}
	}
	return medium{} // validation requires one of them
}

// ofISCSI returns the medium of an iSCSI volume.
// Source of the name: k8s.io/kubernetes/pkg/volume/iscsi, GetVolumeName.
func ofISCSI(portal, iqn string, lun int32) medium {
	return medium{name: fmt.Sprintf("%s/%s:%s:%d", iscsiPlugin, portal, iqn, lun)}
}

// blockStoreID returns the ID of a volume of AWS, which may be written "aws://zone/id".
func blockStoreID(id string) string {
	if inZone, ok := strings.CutPrefix(id, "aws://"); ok {
		_, id, _ = strings.Cut(inZone, "/")
	}
	return strings.Trim(id, "/")
}

// diskHandle returns the handle of a disk of GCE in a zone, in several ("zone__zone"), or in one
// that is not known ("").
func diskHandle(zones, disk string) string {
	zone, _, several := strings.Cut(zones, "__")
	place := "zones/" + cmp.Or(zone, "UNSPECIFIED")
	if several {
		place = "regions/" + zone[:max(strings.LastIndex(zone, "-"), 0)]
	}
	return "projects/UNSPECIFIED/" + place + "/disks/" + disk
}
