// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attachdetach attaches volumes to the nodes of the Pods that use them, and detaches them
// when no Pod does.
//
//	Pod ─▶ claim ─▶ PersistentVolume ─▶ desired: the volume at the node of the Pod
//	                                        │
//	            ┌───────────────────────────┴──────────── this controller ────────────┐
//	            ▼                                                                     ▼
//	    VolumeAttachment ◀─▶ external-attacher ─▶ storage            Node.status.volumesAttached
//	    (attached: actual)                                                            │
//	                                                                                  ▼
//	    Node.status.volumesInUse ◀──────────────────────────── kubelet mounts what it names
//
// A VolumeAttachment asks the external-attacher of a CSI driver to attach a volume to a node.
// Deleting it asks for the opposite: the attacher has a finalizer on it until the volume is
// detached.
//
// # What it watches and writes
//
// It watches Pods, claims, PersistentVolumes, Nodes, VolumeAttachments and CSIDrivers. It creates
// and deletes VolumeAttachments, writes volumesAttached into the status of Nodes, and records Events
// on Pods. Kubelets that do not leave attaching to it do not have the annotation [Annotation] on
// their Node; for those it attaches nothing.
//
// # Which volumes
//
// Volumes of CSI drivers, unless their CSIDriver has attachRequired false, and volumes of the
// plugins that CSI drivers have taken over, in PersistentVolumes and in Pods. For Fibre Channel and
// iSCSI there is nothing to attach, but their kubelets wait for the entry in the status of the
// Node. Volumes of other plugins are never attached: NFS, hostPath, local and CSI volumes that
// stand in a Pod. FlexVolumes with an attacher are not supported, because their drivers are programs
// on the control plane's machine.
//
// # The order of decisions
//
// A run is for one volume, at all nodes that it concerns, so one volume has one decision at a time
// and others run beside it. Package controller/worlds has the operations attach and detach of each volume
// at each node: what is in progress, since when, and when one that failed may be tried again (500 ms
// to 2 minutes and 2 seconds). Detaches come first:
//
//  1. A volume that nothing needs at a node, and that the kubelet has in use there, waits. From a
//     node that is not ready it is detached by force 6 minutes later. From one with the taint
//     node.kubernetes.io/out-of-service it is detached at once.
//  2. Otherwise a second loop, over nodes, takes the entry of the volume out of the status of the
//     Node, and checks that the Node as the server has it after that does not have the volume in
//     use. A force that the server's Node does not justify any more is refused. One write and one
//     check serve all volumes of a node.
//  3. Then the VolumeAttachment is deleted. It counts until its finalizer is gone.
//  4. A volume that a Pod needs is attached, unless its access modes allow one node only and there is
//     a VolumeAttachment for another one, in whatever state.
//  5. The loop over nodes adds an attached volume to the status of its Node.
//
// # What holds
//
//   - A volume for one node is never attached to two nodes by this controller. The next run for a
//     volume waits until the informers have seen its own writes, and a write without an answer is
//     read from the server first.
//   - A volume is not detached while the kubelet of a node in good health has it in use, however
//     long that takes.
//   - A Pod that refers to the claim of a volume keeps the volume at its node for as long as it may
//     run, whatever becomes of the claim.
//   - A VolumeAttachment whose name is not the hash of its volume and node belongs to another
//     program and is left alone.
//
// # Metrics
//
// [Controller] is a collector of the metrics of upstream's controller. They are counted when they
// are read: the controller keeps no sums for them, but for how long attaches and detaches take.
//
// # After a restart
//
// VolumeAttachments and the status of Nodes are the actual world, so nothing has to be guessed. A
// volume that nothing needs is detached, also if an earlier process has attached it. What is lost is since when: the 6
// minutes begin again, and a volume of a Node that does not exist counts as in use.
//
// # What differs from kube-controller-manager
//
// Names of VolumeAttachments and volumes, waits, flags, and the Events FailedAttachVolume and
// SuccessfulAttachVolume are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/volume/attachdetach), with these differences:
//
//   - It compares all volumes each 100 ms. Here events and timers start a run for one volume.
//   - It skips the check of volumesInUse after 6 minutes for nodes in good health, too, and decides
//     about force by its cache. Here the server's Node decides.
//   - It does not detach before an attach of the same volume has ended. Here the VolumeAttachment
//     is deleted, and the driver ends what it has begun.
//   - A Pod that waits for a node that is not ready gets an Event that says until when, and one that
//     waits for a driver that cannot detach gets the driver's error.
//   - It leaves VolumeAttachments whose PersistentVolume is gone. Here the volume is found in the
//     status of the Node, if that names it.
package attachdetach
