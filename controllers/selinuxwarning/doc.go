// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selinuxwarning says which Pods use one volume with different SELinux labels.
//
// On a node with SELinux, a volume can be mounted with the label of a Pod, which is quick, or the
// container runtime can give the label to each file. A volume that is mounted with the label of one
// Pod cannot be used on the same node by a Pod with another label, or by a Pod that has the files
// relabelled. The controller finds such Pods before they meet on a node. It is off by default: it
// has to be named in --controllers.
//
// # What it watches and writes
//
// It watches Pods, PersistentVolumeClaims, PersistentVolumes and CSIDrivers. It writes nothing but
// Events about Pods. Its metric has a series for each conflict.
//
// # The order of decisions
//
//  1. Which storage a volume of a Pod is: that of its claim, when claim and volume are bound to
//     each other, or that which the Pod names itself. Plugins that a CSI driver has taken over
//     count as volumes of the driver.
//  2. With which label the containers mount it: their own options, or those of the Pod. Several
//     labels in one Pod are an Event MultipleSELinuxLabels.
//  3. Whether the label is a mount option: the policy of the Pod is MountOption, and the Pod has a
//     label. In all other cases the policy is Recursive, and there is no label.
//  4. Whether the storage is mounted with labels at all: Fibre Channel and iSCSI are, CSI volumes
//     if the CSIDriver has seLinuxMount, and others are not. The access mode does not count, as it
//     does not in kube-controller-manager.
//  5. Which Pods with the same storage differ in the policy (Event SELinuxChangePolicyConflict), or
//     in the label (Event SELinuxLabelConflict). Both Pods get the Event. An empty user, role or
//     type is no difference, since the nodes have defaults for them, and an empty level is one.
//
// # What holds
//
//   - A Pod counts whether it runs or not, and on whichever node, until it has ended or is gone.
//   - Each conflict is reported once, when it comes into being. A manager that starts reports the
//     conflicts that there are.
//   - When a CSIDriver changes, all its volumes are compared at once.
//   - The memory is proportional to the volumes that Pods use. Conflicts are not stored: the
//     metric computes them.
//   - The status of a Pod starts no run until the Pod has ended. A Pod without volumes is not kept.
//
// # What differs from kube-controller-manager
//
// Events, metrics and rules are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/volume/selinuxwarning), with these differences:
//
//   - It tries again and again while a claim is not bound, and while a Pod has several labels, with
//     an Event each time. Here the claim or its volume starts the next run.
//   - When a CSIDriver begins to mount with labels, it compares Pods that it has reconciled again
//     with those that it has not, and reports conflicts of policies that do not exist.
//   - One Pod that is gone keeps it from reporting the rest of the conflicts.
//   - It does not see ephemeral containers, and takes a new Pod for an earlier one of the same name.
package selinuxwarning
