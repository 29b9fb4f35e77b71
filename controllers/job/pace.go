// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// Changes of a Job's Pods are collected, so that one run and one status are for many of them.
//
// Upstream starts a run a second after the first change, whatever it is
// (k8s.io/kubernetes/pkg/controller/job, SyncJobBatchPeriod). In a benchmark of an indexed Job of
// 1,000 Pods, 50 at a time, on a loaded machine, a second after each run made 20 s of 28 s, and the
// controller used 0.6 s of CPU: the 50 Pods had ended long before. The wait is worthwhile only while
// most Pods still run. So a run begins
//
//   - a second after the one before has begun. Its own writes are part of that second;
//   - or as soon as half of the Pods that were active after the run before are not active any more.
//     The run before was in proportion to these Pods, and each later one needs half of what is left
//     or of what was created since. So the work for each Pod is bounded, however many there are.

// pause returns how long changes of a Job's Pods are collected before the next run. A change of
// the Job's spec does not wait.
func (r *reconciler) pause(job *batchv1.Job) time.Duration {
	known, ok := r.memories.get(job)
	if !ok || known.worked.IsZero() || known.generation != job.Generation {
		return 0
	}
	left := known.worked.Add(r.options.Batch).Sub(r.now())
	if left <= 0 || known.active > 0 && !r.open.moreActive(r.pods.Snapshot(), job, known.active/2) {
		return 0
	}
	return left
}
