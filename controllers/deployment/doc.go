// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deployment is the controller of Deployments: it keeps one ReplicaSet
// for each Pod template that a Deployment has had, and moves Pods from the old
// ones to the one of today.
//
// # What it watches and writes
//
// It reconciles a Deployment when the Deployment changes, when one of its ReplicaSets
// does, when a ReplicaSet without owner appears that the Deployment's selector may match,
// and, with the Recreate strategy, when a Pod of an old ReplicaSet is gone.
//
// It creates, scales, annotates, adopts, releases and deletes ReplicaSets, and
// writes the status of Deployments, with their revision annotation. Pods it only
// reads; they are the ReplicaSet controller's.
//
// # How it decides
//
//	Deployment, its ReplicaSets, the time ─▶ decide ─▶ plan ─▶ apply
//
// decide is a pure function: plan.go chooses what kind of step is due, and
// rolling.go, recreate.go, resize.go and rollback.go each take one. apply.go
// writes the plan. One run takes at most one step; that the next one sees the
// writes of this one is the loop's business, see package controller.
//
// # What always holds
//
// During a rolling update, at every resourceVersion:
//
//   - there are never more Pods, terminating ones not counted, than the desired
//     number and maxSurge;
//   - there are never fewer available Pods than the desired number without
//     maxUnavailable because of what the controller does. Pods that fail on their
//     own are another matter.
//
// Both follow from one rule: a step is taken only when every ReplicaSet is
// steady, which is when its controller has seen the size it is to have and has
// said that no more Pods than that are left. Scaling down does not wait.
//
// Two things are outside of it. Scaling in the middle of a rollout keeps
// proportions, whichever Pods are available. And with minReadySeconds, an old Pod
// that becomes ready between the status that called it unhealthy and its deletion
// may be spared, and one that was available go in its place: a ReplicaSet prefers
// to delete what is not ready, not what is not available.
//
// A Deployment that is being deleted gets its status written and nothing else.
//
// # Names and annotations
//
// ReplicaSets are named by the same hash of their template, and carry the same
// labels and annotations, as those that kube-controller-manager makes. A cluster
// may change from one to the other and back without a rollout.
//
// # Where it differs from kube-controller-manager, on purpose
//
//   - It waits for steady ReplicaSets, as said above. kube-controller-manager uses the
//     sizes that it has set, and surge Pods may exceed their bound while old ones are not
//     deleted yet.
//   - It grows the current ReplicaSet and shrinks old ones in one run, and writes
//     the status once a run; there are no conflicts with its own writes.
//   - Of an old ReplicaSet, Pods that are ready but not available yet count as
//     unhealthy only where none is available: a ReplicaSet that shrinks does not
//     choose between the two.
//   - The progress deadline starts again when a rollout begins with a ReplicaSet that
//     exists already, as after kubectl rollout undo. Otherwise the rollback of a rollout
//     that has timed out counts as timed out.
//   - When a ReplicaSet cannot be created, the observed generation moves on, so
//     that kubectl rollout status reports the failure and does not wait for the
//     controller.
//   - ReplicaSets whose desired-replicas annotation differs although their size is
//     right get the annotation mended; a size that changes along with the strategy
//     to Recreate does not block the rollout.
//   - A limit that cannot be read, such as a percentage that is too long for an integer, ends
//     the run with an error that names the field. Upstream reports it only while the new
//     ReplicaSet has to grow, and takes the limit for 0 otherwise.
//   - ReplicaSets are patched, not replaced, and deleted only in the version that was
//     read.
package deployment
