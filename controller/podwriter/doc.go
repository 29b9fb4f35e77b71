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
// # Names
//
// A Pod that has a generateName and no name gets its name here, in the form in which the
// API server makes names. So a create whose answer was lost can be sent again: the next Pod
// of that owner with that generateName is created under the same name, and the server
// creates it once. A Pod that has a name, as those of a StatefulSet, keeps it.
//
// If another owner's Pod has a generated name, another name is drawn. If it has a
// name that was given, the create fails.
package podwriter
