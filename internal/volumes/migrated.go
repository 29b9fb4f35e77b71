// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// InTreePrefix begins the names of the plugins that are or were part of Kubernetes. The names of
// all other drivers begin differently.
const InTreePrefix = "kubernetes.io/"

// drivers has the CSI driver that has taken over each plugin of Kubernetes that is gone.
// Source: k8s.io/csi-translation-lib/plugins, and for which of them the migration is on (all)
// k8s.io/kubernetes/pkg/volume/csimigration, IsMigrationEnabledForPlugin.
var drivers = map[string]string{
	"kubernetes.io/aws-ebs":         "ebs.csi.aws.com",
	"kubernetes.io/azure-disk":      "disk.csi.azure.com",
	"kubernetes.io/azure-file":      "file.csi.azure.com",
	"kubernetes.io/cinder":          "cinder.csi.openstack.org",
	"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
	"kubernetes.io/portworx-volume": "pxd.portworx.com",
	"kubernetes.io/vsphere-volume":  "csi.vsphere.vmware.com",
}

// DriverOf returns the CSI driver that has taken over a plugin, or "".
func DriverOf(plugin string) string { return drivers[plugin] }

// IsInTree reports whether a name is that of a plugin of Kubernetes, be it gone or not.
func IsInTree(plugin string) bool { return strings.HasPrefix(plugin, InTreePrefix) }

// MigratedAnnotation returns the driver that the annotation [MigratedTo] should name where an
// object has these annotations, or "" where it should not be there. provisioner is the annotation
// with the name of the plugin.
func MigratedAnnotation(annotations map[string]string, provisioner ...string) string {
	for _, name := range provisioner {
		if plugin, ok := annotations[name]; ok {
			return DriverOf(plugin)
		}
	}
	return annotations[MigratedTo] // the plugin is not known, so nothing changes
}

// PluginOf returns the name of the plugin that serves the source of a volume, of those that the
// controller manager still has, or "".
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app, probeControllerVolumePlugins.
func PluginOf(volume *corev1.PersistentVolume) string {
	switch source := &volume.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		return HostPathPlugin
	case source.NFS != nil:
		return NFSPlugin
	}
	return ""
}

// Names of the plugins that make, delete or recycle volumes in the controller manager.
// Source: k8s.io/kubernetes/pkg/volume/hostpath and nfs.
const (
	HostPathPlugin = "kubernetes.io/host-path"
	NFSPlugin      = "kubernetes.io/nfs"
)
