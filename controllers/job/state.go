// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// view is what a decision about a Job depends on.
type view struct {
	job *batchv1.Job
	// pods are those that the Job controls. Pods that have ended and are counted may be absent.
	pods    []*corev1.Pod
	now     time.Time
	backoff backoff // of the Pods that are counted
	options Options
	// hold is why no Pod may be created, or nil.
	hold *controller.Reason
}

// state is what the Pods of a Job add up to.
type state struct {
	view
	activePods                 []*corev1.Pod
	active, ready, terminating int32

	// newSucceeded and newFailed are Pods that have ended and are not in the status yet.
	newSucceeded, newFailed []*corev1.Pod
	// recorded are the UIDs of Pods that the status lists as uncounted.
	recorded map[types.UID]bool

	// succeeded and failed are the Pods that have ended, those that the status does not count
	// yet included. In an indexed Job, succeeded counts indexes.
	succeeded, failed int32

	// The indexes of an indexed Job that have succeeded, by the status and by the Pods too, and
	// those that have failed as often as they may.
	completedBefore, completed, failedIndexes intervals
	// retiring are the Pods that failed last in an index, if the index is to have another Pod.
	// Such a Pod keeps its finalizer until then: it has the number of failures of the index.
	retiring map[int]*corev1.Pod
}

// observe counts Pods.
func observe(v view) *state {
	s := &state{view: v, recorded: map[types.UID]bool{}}
	status := &v.job.Status
	s.succeeded, s.failed = status.Succeeded, status.Failed
	if u := status.UncountedTerminatedPods; u != nil {
		s.record(u.Succeeded, &s.succeeded)
		s.record(u.Failed, &s.failed)
	}
	for _, pod := range v.pods {
		switch {
		case podstate.Active(pod):
			s.activePods = append(s.activePods, pod)
			s.active++
			if podstate.Ready(pod) {
				s.ready++
			}
		case podstate.Terminating(pod):
			s.terminating++
		}
		s.end(pod)
	}
	s.succeeded += count(s.newSucceeded)
	for _, pod := range s.newFailed {
		if judge(v.job.Spec.PodFailurePolicy, pod).counts() {
			s.failed++
		}
	}
	if indexed(v.job) {
		s.observeIndexes()
	}
	return s
}

// record notes UIDs that the status lists, and adds their number to a counter.
func (s *state) record(uids []types.UID, counter *int32) {
	for _, uid := range uids {
		s.recorded[uid] = true
	}
	*counter += count(uids)
}

// end notes a Pod if it has ended and the status does not say so yet.
func (s *state) end(pod *corev1.Pod) {
	if !tracked(pod) || s.recorded[pod.UID] {
		return
	}
	if indexed(s.job) {
		if _, ok := validIndex(s.job, pod); !ok {
			return
		}
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		s.newSucceeded = append(s.newSucceeded, pod)
	case hasFailed(s.job, pod):
		s.newFailed = append(s.newFailed, pod)
	}
}

// observeIndexes finds out which indexes have ended. An index is in one of the two sets: the
// server refuses a status in which one is in both.
func (s *state) observeIndexes() {
	limit := int(completions(s.job))
	s.completedBefore = parseIntervals(s.job.Status.CompletedIndexes, limit)
	if backsOffPerIndex(s.job) && s.job.Status.FailedIndexes != nil {
		s.failedIndexes = parseIntervals(*s.job.Status.FailedIndexes, limit)
	}
	var succeeded []int
	for _, pod := range s.newSucceeded {
		if index := indexOf(pod); !s.failedIndexes.has(index) {
			succeeded = append(succeeded, index)
		}
	}
	s.completed = s.completedBefore.union(indexSet(succeeded))
	s.succeeded = count32(s.completed.size())
	if !backsOffPerIndex(s.job) {
		return
	}
	var failed []int
	for _, pod := range s.pods {
		if index, ok := validIndex(s.job, pod); ok && tracked(pod) && s.failsIndex(pod) && !s.completed.has(index) {
			failed = append(failed, index)
		}
	}
	s.failedIndexes = s.failedIndexes.union(indexSet(failed))
	s.retire()
}

// failsIndex reports whether the failure of a Pod is that of its index.
func (s *state) failsIndex(pod *corev1.Pod) bool {
	if !hasFailed(s.job, pod) {
		return false
	}
	ruling := judge(s.job.Spec.PodFailurePolicy, pod)
	before, _ := failuresOf(pod)
	return ruling.action == batchv1.PodFailurePolicyActionFailIndex || ruling.counts() && before >= *s.job.Spec.BackoffLimitPerIndex
}

// retire finds the Pod that failed last in each index that needs another Pod. An index that has
// an active Pod does not: that one has the number of failures.
func (s *state) retire() {
	s.retiring = map[int]*corev1.Pod{}
	active := indexesOf(s.activePods)
	for _, pod := range s.pods {
		index, ok := validIndex(s.job, pod)
		if !ok || !tracked(pod) || !hasFailed(s.job, pod) || s.completed.has(index) || s.failedIndexes.has(index) || active.has(index) {
			continue
		}
		if last := s.retiring[index]; last == nil || failedAfter(pod, last) {
			s.retiring[index] = pod
		}
	}
}

// failedAfter reports whether pod failed later in its index than other.
func failedAfter(pod, other *corev1.Pod) bool {
	_, failures := failuresOf(pod)
	_, others := failuresOf(other)
	return failures >= others && !finishTime(pod).Before(finishTime(other))
}

// count returns how many there are. A status counts in 32 bits.
func count[T any](list []T) int32 { return count32(len(list)) }

// count32 converts a number of Pods or indexes, which is far below the limit of 32 bits.
func count32(n int) int32 { return int32(n) }
