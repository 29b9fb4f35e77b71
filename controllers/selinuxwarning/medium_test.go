// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAMediumIsWhatThePluginTellsItFromOthersBy(t *testing.T) {
	type source = corev1.PersistentVolumeSource
	zones := map[string]string{"disk": "europe-1-a", "both": "europe-1-a__europe-1-b"}
	for _, c := range []struct {
		volume string
		source source
		want   medium
	}{
		{"pv", source{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d.example", VolumeHandle: "h"}}, medium{"kubernetes.io/csi/d.example^h", "d.example"}},
		{"pv", source{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a", "b"}, Lun: new(int32(2))}}, medium{"kubernetes.io/fc/[a b]:2", ""}},
		{"pv", source{FC: &corev1.FCVolumeSource{WWIDs: []string{"w"}}}, medium{"kubernetes.io/fc/[w]", ""}},
		{"pv", source{FC: &corev1.FCVolumeSource{}}, medium{}},
		{"pv", source{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "p", IQN: "q", Lun: 3}}, medium{"kubernetes.io/iscsi/p:q:3", ""}},
		{"pv", source{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}, medium{"kubernetes.io/csi/ebs.csi.aws.com^vol-1", "ebs.csi.aws.com"}},
		{"pv", source{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://zone/vol-1"}}, medium{"kubernetes.io/csi/ebs.csi.aws.com^vol-1", "ebs.csi.aws.com"}},
		{"pv", source{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws:///vol-1"}}, medium{"kubernetes.io/csi/ebs.csi.aws.com^vol-1", "ebs.csi.aws.com"}},
		{"pv", source{AzureDisk: &corev1.AzureDiskVolumeSource{DataDiskURI: "uri"}}, medium{"kubernetes.io/csi/disk.csi.azure.com^uri", "disk.csi.azure.com"}},
		{"pv", source{AzureFile: &corev1.AzureFilePersistentVolumeSource{SecretName: "s", ShareName: "n"}}, medium{"kubernetes.io/csi/file.csi.azure.com^s#n#pv", "file.csi.azure.com"}},
		{"pv", source{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "c"}}, medium{"kubernetes.io/csi/cinder.csi.openstack.org^c", "cinder.csi.openstack.org"}},
		{"pv", source{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "g"}}, medium{"kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/g", "pd.csi.storage.gke.io"}},
		{"disk", source{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "g"}}, medium{"kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/europe-1-a/disks/g", "pd.csi.storage.gke.io"}},
		{"both", source{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "g"}}, medium{"kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/regions/europe-1/disks/g", "pd.csi.storage.gke.io"}},
		{"pv", source{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "p"}}, medium{"kubernetes.io/csi/pxd.portworx.com^p", "pxd.portworx.com"}},
		{"pv", source{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "v"}}, medium{"kubernetes.io/csi/csi.vsphere.vmware.com^v", "csi.vsphere.vmware.com"}},
		{"pv", source{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}, medium{}},
		{"pv", source{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}, medium{}},
	} {
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: c.volume, Labels: map[string]string{corev1.LabelTopologyZone: zones[c.volume]}},
			Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: c.source},
		}
		if got := mediumOf(volume); got != c.want {
			t.Errorf("the medium of %s is %v, want %v", c.source.String(), got, c.want)
		}
	}
}

// A Pod that names a volume itself shares it with a Pod that has a claim for it.
func TestAVolumeInThePodIsTheMediumOfTheVolumeOfTheCluster(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	ebs := &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}
	disk := &corev1.AzureDiskVolumeSource{DataDiskURI: "uri"}
	gce := &corev1.GCEPersistentDiskVolumeSource{PDName: "g"}
	portworx := &corev1.PortworxVolumeSource{VolumeID: "p"}
	vsphere := &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "v"}
	fc := &corev1.FCVolumeSource{WWIDs: []string{"w"}}
	for _, c := range []struct {
		inline corev1.VolumeSource
		volume corev1.PersistentVolumeSource
	}{
		{corev1.VolumeSource{FC: fc}, corev1.PersistentVolumeSource{FC: fc}},
		{corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "q"}}, corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "p", IQN: "q"}}},
		{corev1.VolumeSource{AWSElasticBlockStore: ebs}, corev1.PersistentVolumeSource{AWSElasticBlockStore: ebs}},
		{corev1.VolumeSource{AzureDisk: disk}, corev1.PersistentVolumeSource{AzureDisk: disk}},
		{corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "c"}}, corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "c"}}},
		{corev1.VolumeSource{GCEPersistentDisk: gce}, corev1.PersistentVolumeSource{GCEPersistentDisk: gce}},
		{corev1.VolumeSource{PortworxVolume: portworx}, corev1.PersistentVolumeSource{PortworxVolume: portworx}},
		{corev1.VolumeSource{VsphereVolume: vsphere}, corev1.PersistentVolumeSource{VsphereVolume: vsphere}},
	} {
		want := mediumOf(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: c.volume}})
		if got := mediumOfInline(pod, &corev1.Volume{Name: "data", VolumeSource: c.inline}); got != want || got == (medium{}) {
			t.Errorf("the medium of %s is %v, want %v", c.inline.String(), got, want)
		}
	}
	for _, alone := range []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {CSI: &corev1.CSIVolumeSource{Driver: "d.example"}}, {HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
	} {
		if got := mediumOfInline(pod, &corev1.Volume{Name: "data", VolumeSource: alone}); got != (medium{}) {
			t.Errorf("the medium of %s is %v, want none", alone.String(), got)
		}
	}
	file := corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s", ShareName: "n"}}
	if got := mediumOfInline(pod, &corev1.Volume{Name: "data", VolumeSource: file}).name; got != "kubernetes.io/csi/file.csi.azure.com^s#n#data#ns" {
		t.Errorf("the medium of a file share is %s", got)
	}
}
