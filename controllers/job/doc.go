// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job runs Pods until as many have succeeded as each Job wants.
//
// # What it watches and writes
//
// It watches Jobs and Pods. It creates and deletes the Pods of Jobs, adopts and releases Pods,
// removes their finalizers, and writes the status of Jobs. With the feature gate WorkloadWithJob it
// watches, creates and patches Workloads and PodGroups too.
//
// # One run
//
//	Pods ─▶ decide ─▶ creates or deletes ─▶ account ─▶ status ─▶ finalizers ─▶ settle ─▶ status
//
// decide finds out, in this order, whether the Job has ended before, whether it fails (by the Pod
// failure policy, the backoff limit, the deadline, failed indexes), and whether the success policy
// is met. If none of this holds, it compares the active Pods with those that are wanted. A run
// either creates or deletes Pods, 500 at most. A Job is complete when enough Pods have succeeded
// and none is active.
//
// # How a Pod is counted once
//
// Each Pod has the finalizer batch.kubernetes.io/job-tracking, so it cannot vanish before it is
// counted. When it ends, the controller
//
//  1. lists its UID in status.uncountedTerminatedPods, or its index in status.completedIndexes,
//  2. removes the finalizer,
//  3. moves it from the list to the counters status.succeeded and status.failed.
//
// The lists have 500 Pods at most. A process that is killed between two of these writes leaves a
// state that tells which are done: a listed Pod without the finalizer has to be counted, and a Pod
// that has the finalizer and is not listed is new. The next run does not begin before the caches
// show the writes of this one, and the controller remembers which Pods have lost their finalizers
// until the cache shows that. The server refuses a status that was made from an older state of the
// Job, and the next run computes it again.
//
// A surplus Pod that is deleted counts neither way. It loses its finalizer first,
// unless it has changed since the controller read it: it may have succeeded.
//
// A Job is Complete or Failed when all Pods are counted and none is terminating. Before that, the
// condition SuccessCriteriaMet or FailureTarget announces the end.
//
// # Indexes
//
// Sets of indexes are kept as intervals, and so is their text, as in "1,3-5,7". A run costs as much
// as the Job has active and uncounted Pods and intervals, however many indexes it has.
//
// # Backoff
//
// After a Pod has failed, the next one starts 10 s later, after the second one in a row 20 s, and so
// on up to 10 min. With spec.backoffLimitPerIndex each index counts for itself: the Pod that failed
// last in an index keeps its finalizer until the next one exists, since its annotations have the
// number of failures.
//
// # Pods whose Job is gone
//
// A second loop (sweeper.go) removes the finalizers of Pods whose Job does not exist any more. It
// finds them by their own events and at the start, so it works without having seen the Job. It reads the
// Job from the server first: the cache may be behind.
//
// # Pods that are scheduled together
//
// With the feature gate WorkloadWithJob, which is off, each new Job gets a Workload and a PodGroup of
// scheduling.k8s.io/v1beta1, as spec.scheduling says, and its Pods name the PodGroup in
// spec.schedulingGroup. Both are there before the first Pod. The Job owns them, and they go with it.
// The size of a gang may change later; it is written into both.
//
//	Job ─▶ Workload, with one template ─▶ PodGroup ◀─ Pods
//
// A Job that another object controls gets neither, unless that object has a Workload and has put
// the annotation scheduling.k8s.io/group-template-name on the Job: then the Job makes the PodGroup
// of that template. A Job whose Pod template names a PodGroup gets none. A Job that has started
// without a PodGroup, with the gate off for example, goes on without. One that has started with a
// PodGroup and goes on with the gate off creates Pods without it, until the gate is on again.
//
// Pods have no reference to the PodGroup as an owner. Upstream writes one into its Pod template,
// and creates the Pods without it (k8s.io/kubernetes/pkg/controller, GetPodFromTemplate).
//
// # What differs from kube-controller-manager
//
// Behaviour, names, and the reasons and texts of Events and conditions are those of its controller
// of the same name (k8s.io/kubernetes/pkg/controller/job), with these differences:
//
//   - Its backoff is lost with a restart. Here it comes from the Pods that still exist and from the
//     status. It is lost only if the failed Pods are deleted too.
//   - Its orphaned Pods keep their finalizers if the Job went while no controller ran.
//   - A Pod that ends while it is being deleted as a surplus one is counted.
//   - A Pod that was counted as failed when it was deleted, and then succeeds, completes no index.
//   - An index is never both failed and complete, a status that the server refuses.
//   - A Job that is suspended when its last Pod succeeds gets a start time. Without it the server
//     refuses the status.
//   - When containers that restart in place reach the backoff limit, an Event ContainerRestarts has
//     the exit code before the Pod is deleted with its logs.
//   - The first change of a Pod after a quiet second is handled at once. Later ones are collected,
//     as upstream's, but not for a second after each: for a second since the last run began, or
//     until half of the active Pods have ended. A Job that ends does not wait. See pace.go.
//   - Pods that have ended and are counted cost nothing. Upstream reads all Pods of a Job in each
//     run.
//   - If nothing loses its finalizer, the interim and the final condition are written at once.
//   - A Job with a dot in its name, or with more than 57 characters, gets a Workload too. Upstream
//     names its template so that the server refuses it, and such a Job never starts.
//   - A new Job whose controller has a Workload finds it, though the cache does not show it yet.
//   - A Job whose Workload has other templates than one starts no Pods, and counts those that end.
//     Upstream does neither.
//   - A PodGroup that cannot be made has an Event FailedPodGroupCreate. A change of a Workload or a
//     PodGroup starts a run, so that the size of a gang is put right at once.
package job
