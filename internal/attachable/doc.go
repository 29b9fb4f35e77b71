// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attachable says which volumes are attached to nodes before they are mounted, and what
// they are called there. The attach-detach controller and the kubelets must agree on it: the names
// stand in the status of Nodes, in volumesAttached and volumesInUse.
//
// Volumes of CSI drivers are attachable, and so are those of the plugins of Kubernetes that CSI
// drivers have taken over. For Fibre Channel and iSCSI there is nothing to attach, but their
// kubelets wait for the entry all the same. Whether a CSI driver attaches at all is in its CSIDriver,
// which the callers read.
package attachable
