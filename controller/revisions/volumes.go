// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// fillVolume fills in the defaults of a volume.
func fillVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if v.Image != nil {
		fill(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
	if v.HostPath != nil {
		fillPointer(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.Secret != nil {
		fillPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		fillPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		fillPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		fillFiles(v.DownwardAPI.Items)
	}
	if v.Projected != nil {
		fillProjected(v.Projected)
	}
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		claim := &v.Ephemeral.VolumeClaimTemplate.Spec
		fillPointer(&claim.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundUp(claim.Resources.Limits)
		roundUp(claim.Resources.Requests)
	}
	fillDriver(v)
}

func fillFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		fillFieldRef(files[i].FieldRef)
	}
}

func fillProjected(p *corev1.ProjectedVolumeSource) {
	fillPointer(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if down := p.Sources[i].DownwardAPI; down != nil {
			fillFiles(down.Items)
		}
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			fillPointer(&token.ExpirationSeconds, int64(time.Hour/time.Second))
		}
	}
}

// fillDriver fills in the defaults of volumes of storage systems.
func fillDriver(v *corev1.VolumeSource) {
	if v.ISCSI != nil {
		fill(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		fill(&v.RBD.RBDPool, "rbd")
		fill(&v.RBD.RadosUser, "admin")
		fill(&v.RBD.Keyring, "/etc/ceph/keyring")
	}
	if v.AzureDisk != nil {
		fillPointer(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		fillPointer(&v.AzureDisk.FSType, "ext4")
		fillPointer(&v.AzureDisk.ReadOnly, false)
		fillPointer(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
	}
	if v.ScaleIO != nil {
		fill(&v.ScaleIO.StorageMode, "ThinProvisioned")
		fill(&v.ScaleIO.FSType, "xfs")
	}
}
