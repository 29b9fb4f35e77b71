// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podwriter creates and deletes the Pods of an owner, such as a ReplicaSet, a Job, a
// DaemonSet or a StatefulSet.
//
// A controller decides which Pods to create and which to delete. A [Writer] does it:
//
//   - [Writer.Create] creates several Pods, first one, then twice as many at a time. It
//     stops after a failure, so that a quota that is used up, or an admission webhook
//     that refuses the Pods, costs few requests.
//   - [Writer.Delete] deletes Pods by their UIDs. Another Pod that has taken the name of
//     one stays.
//
// Both record an Event on the owner for each Pod, with the reasons that
// kube-controller-manager gives. In a namespace that is being deleted, Pods can no longer be
// created. That is no failure, and has no Event.
//
// # What the four controllers need
//
//   - A ReplicaSet's Pods are alike. [FromTemplate] makes them.
//   - A Job gives an indexed Pod a generateName with its index, and adds its finalizer to the
//     Pods. [Writer.BeforeDelete] removes the finalizer from a Pod that is deleted.
//   - A DaemonSet's Pods have one generateName, and differ by their nodes:
//     [Writer.WithSlots] tells them apart.
//   - A StatefulSet names its Pods by their ordinals. [Writer.BeforeCreate] creates their
//     claims, and [Writer.WithMessages] writes the Events that upstream writes for it.
//
// How many Pods a run creates or deletes is the controller's decision: 500 for a ReplicaSet
// and a Job, 250 for a DaemonSet.
//
// # Names
//
// A Pod that has a generateName and no name gets its name here, in the form in which the
// API server makes names. So a create whose answer was lost can be sent again: the next Pod
// of that owner with that generateName is created under the same name, and the server
// creates it once. If the Pods of one generateName differ, the next Pod of the same slot is. A Pod that has a name, as those of a StatefulSet, keeps it.
//
// If another owner's Pod has a generated name, another name is drawn. If it has a
// name that was given, the create fails.
//
// # Where it differs from upstream
//
//   - Upstream leaves the names to the server, and counts the creates and deletes whose
//     effect its cache must show. Here names make a create repeatable, and the loop waits
//     until the informer has seen the writes.
//   - Deletes carry the Pod's UID, and at most 64 of one owner are in flight. Upstream sends
//     all at once, by name.
//   - In a namespace that is being deleted, the first refusal ends the creates of a run. A Job
//     and a DaemonSet of upstream send all of them.
//   - If a StatefulSet's Pod exists and is not the set's own, there is an Event. Upstream only
//     returns the error.
//
// Sources: k8s.io/kubernetes v1.37, pkg/controller (RealPodControl), pkg/controller/job
// (manageJob, deleteJobPods), pkg/controller/daemon (syncNodes) and
// pkg/controller/statefulset (StatefulPodControl, slowStartBatch).
package podwriter
