// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podgroupprotection keeps PodGroups with Pods that have not ended from being removed.
//
// Each PodGroup has the finalizer scheduling.k8s.io/podgroup-protection, which admission adds when
// the group is created. A group that is deleted stays while a Pod of its namespace names it in
// spec.schedulingGroup and is neither Succeeded nor Failed. The controller then removes the
// finalizer. An Event about the group names some of the Pods.
//
// The controller runs with the feature gate GenericWorkload, which is off by default, and in a
// cluster that serves scheduling.k8s.io/v1beta1.
//
// # What it watches and writes
//
// It watches PodGroups and Pods. It removes the finalizer of PodGroups, and records Events about
// them.
//
// # What holds
//
//   - A PodGroup that was created without the finalizer stays without it, as upstream's do.
//   - A group finds its Pods by an index, and only a Pod that ends or goes enqueues its group. Both
//     read two texts from the bytes of the Pod.
//   - A Pod counts by the name of the group, whether the Pod is older than the group or not.
//   - An update carries the version of the group that was judged: where the group has changed
//     since, it is judged again.
//   - The decision relies on the cache, as upstream's does. A Pod that is created in the same moment
//     as its group is deleted may find that the group is gone.
//
// Behaviour is that of kube-controller-manager's controller of the same name
// (k8s.io/kubernetes/pkg/controller/scheduling/podgroupprotection). Upstream's role of the
// controller has no right to write Events: with --use-service-account-credentials and the roles of
// the API server, there are none.
package podgroupprotection
