// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statefulset keeps the Pods of StatefulSets. Each Pod has an ordinal, and with it a name,
// a host name and claims that its successor has again.
//
//	web-0  data-web-0
//	web-1  data-web-1      ordinals from spec.ordinals.start on
//	web-2  data-web-2
//
// # What it watches and writes
//
// It watches StatefulSets, their Pods, their claims and their ControllerRevisions. It creates and
// deletes Pods, mends their labels, creates claims and sets the owners of claims, records
// revisions, and writes the status of StatefulSets.
//
// # How it decides
//
//	StatefulSet, Pods, claims, revisions, the time ─▶ decide ─▶ plan ─▶ apply
//
// decide is a pure function (plan.go). It takes the steps in this order, and one that has to wait
// ends the run:
//
//  1. Pods that are wanted: a Pod that has ended is deleted, a missing one is created with its
//     claims, and one that lacks labels or claims is mended.
//  2. Pods that are not wanted are deleted, the highest ordinal first.
//  3. Pods of another revision are deleted, the highest ordinal first, down to the partition and
//     within maxUnavailable (rollout.go). Step 1 creates them again.
//
// With podManagementPolicy OrderedReady, step 1 goes from the lowest ordinal up and stops at the
// first Pod that is not available, and step 2 deletes one Pod at a time. With Parallel, no Pod
// waits for another one, and only step 3 has a limit.
//
// # What holds
//
//   - There are never two Pods of an ordinal, not while one terminates either: the API server has
//     one object of a name.
//   - With OrderedReady, a Pod is created only while all Pods below it are available, and deleted
//     for a smaller size only while no Pod above it is left.
//   - The controller makes no more Pods unavailable than maxUnavailable.
//   - A claim is created before its Pod, and has its owners before its Pod is deleted.
//   - A run sees what earlier runs for the same StatefulSet wrote: the loop holds the key until
//     the informers show the Pods, claims, revisions and status that a run wrote. A create whose
//     answer was lost is sent again under the same name.
//   - The bytes, the names and the hashes of revisions are upstream's (package revisions), so a
//     cluster that changes from one manager to the other restarts no Pod.
//
// # A rollout that is stuck at a Pod that was never ready
//
// Under OrderedReady, upstream's rollout waits for a Pod that is not ready, also when that Pod has
// a broken template and the user has rolled back: the rollback waits for the Pod, which waits for
// the rollback (https://github.com/kubernetes/kubernetes/issues/67250). A user has to delete the
// Pod. Here the rollout replaces the Pod (neverready.go), if
//
//   - the strategy is RollingUpdate, the Pod has an old revision, and its ordinal is not below the
//     partition: the rollout would replace the Pod in any case, as soon as it is ready;
//   - the Pod has never been ready, which its status has to prove;
//   - every other Pod that has been ready is available, and each ordinal below the highest wanted
//     Pod has a Pod: OrderedReady creates a Pod only when all Pods below it are ready, so an
//     ordinal without a Pod had one that was ready;
//   - nothing of the Pod runs, or one of its containers has failed and does not run, or they have run for ten minutes.
//
// Why a quorum is safe: the members on which the application has ever been able to count are Pods
// that were ready. The rule deletes none of them. While it deletes a Pod, all of them are
// available, so a majority of them is what it was before, and the service has run without the
// deleted Pod since that Pod was created. The Pod keeps its claims, its ordinal and its name. It ends
// with its grace period, and its successor is created when it is gone. The last condition is for
// data: a process that fills a volume for the first time is not interrupted in the middle.
//
// Nothing distinguishes a highest ordinal whose Pod is gone from one whose Pod was never created. It
// counts as the latter: otherwise a first template that is broken could not be mended. An ordinal
// that a smaller spec.ordinals.start adds below existing Pods counts as one that had a Pod.
//
// In each other state the rollout waits, as upstream's does, because an application can depend on
// that: a Pod that was ready once may be the member that has the newest data.
//
// A smaller size is treated alike: a Pod that was never ready does not hold up its own deletion.
//
// # What differs from kube-controller-manager
//
// Behaviour, names, labels, Events and conditions are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/statefulset), with these differences:
//
//   - The rule above about Pods that were never ready.
//   - It takes the Pod web-01 for the one of ordinal 1. Here a member has the name that its ordinal
//     gives.
//   - A claim gets its reference to the StatefulSet when it is created, and not by a second write.
//   - A missing claim of a Pending Pod, and the end of a claim or of another Pod that is in the
//     way, start a run. It notices them at the next change of a Pod or at a retry.
//   - A Pod whose volumes are not its claims has an Event that says to delete it. It sends an
//     update again and again, which the API server refuses.
//   - If another Pod has the name of a member, an Event says so. It only returns an error.
//   - The status counts what the run has just created and deleted.
//   - A run creates 500 Pods at most.
//   - Deletes carry the Pod's UID.
package statefulset
