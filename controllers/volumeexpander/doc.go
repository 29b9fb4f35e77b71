// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volumeexpander hands the growth of volumes over to the drivers that resize them.
//
// A claim that asks for more storage than it has waits for its volume to grow. The controller grows
// no volume itself. An Event ExternalExpanding and the reason WaitsForResizer say that the claim
// waits for a driver. For a volume of a plugin that a CSI driver has taken over, the controller
// writes the name of the driver into the annotation volume.kubernetes.io/storage-resizer of the
// claim, and the resizer of that driver acts on it. The resizer of a CSI volume needs no annotation.
//
// # What it watches and writes
//
// It watches PersistentVolumeClaims, and reads the volume of a claim that is to grow from the
// server. It writes that annotation, and records Events about claims.
//
// # What holds
//
//   - A claim starts a run when its growth begins, when it asks for another size, and when its
//     growth has ended. No other event does, and without growth no volume is read.
//   - A volume that is bound to another claim is left alone.
//   - The annotation is written once, with the version of the claim that was judged.
//
// # What differs from kube-controller-manager
//
// Behaviour and Events are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/volume/expand). FlexVolumes, which are deprecated, are not
// resized: kube-controller-manager marks their claims for the kubelet. The reason
// FlexVolumeNotResized says so.
//
// The seven plugins that drivers have taken over are a table here. k8s.io/csi-translation-lib has
// the same names, and translates whole volumes, which nothing here needs.
package volumeexpander
