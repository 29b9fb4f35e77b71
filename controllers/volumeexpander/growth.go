// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumeexpander

import corev1 "k8s.io/api/core/v1"

// migration is a plugin of Kubernetes that a CSI driver has taken over.
type migration struct {
	plugin, driver string
	has            func(*corev1.PersistentVolumeSource) bool
}

// migrations are all of them.
// Source: k8s.io/csi-translation-lib/plugins, and k8s.io/kubernetes/pkg/volume/csimigration,
// IsMigrationEnabledForPlugin.
var migrations = []migration{
	{"kubernetes.io/aws-ebs", "ebs.csi.aws.com", func(s *corev1.PersistentVolumeSource) bool { return s.AWSElasticBlockStore != nil }},
	{"kubernetes.io/azure-disk", "disk.csi.azure.com", func(s *corev1.PersistentVolumeSource) bool { return s.AzureDisk != nil }},
	{"kubernetes.io/azure-file", "file.csi.azure.com", func(s *corev1.PersistentVolumeSource) bool { return s.AzureFile != nil }},
	{"kubernetes.io/cinder", "cinder.csi.openstack.org", func(s *corev1.PersistentVolumeSource) bool { return s.Cinder != nil }},
	{"kubernetes.io/gce-pd", "pd.csi.storage.gke.io", func(s *corev1.PersistentVolumeSource) bool { return s.GCEPersistentDisk != nil }},
	{"kubernetes.io/portworx-volume", "pxd.portworx.com", func(s *corev1.PersistentVolumeSource) bool { return s.PortworxVolume != nil }},
	{"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", func(s *corev1.PersistentVolumeSource) bool { return s.VsphereVolume != nil }},
}

// migrationOf returns the migration of a volume's plugin, false if there is none.
func migrationOf(volume *corev1.PersistentVolume) (migration, bool) {
	for _, m := range migrations {
		if m.has(&volume.Spec.PersistentVolumeSource) {
			return m, true
		}
	}
	return migration{}, false
}

// wantsMore reports whether a bound claim asks for more storage than it has.
func wantsMore(claim *corev1.PersistentVolumeClaim) bool {
	wants, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	return claim.Status.Phase == corev1.ClaimBound && wants.Cmp(has) > 0
}
