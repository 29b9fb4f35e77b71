// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/podrank"
)

// noIndex is the completion index of a Pod that has none.
const noIndex = -1

// indexed reports whether each Pod of a Job has an index of its own.
func indexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

// backsOffPerIndex reports whether each index has a limit of failures of its own.
func backsOffPerIndex(job *batchv1.Job) bool { return job.Spec.BackoffLimitPerIndex != nil }

// indexOf returns the completion index of a Pod, or noIndex.
func indexOf(pod *corev1.Pod) int {
	if index, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil && index >= 0 {
		return index
	}
	return noIndex
}

// validIndex returns the index of a Pod of an indexed Job, and whether the Job has such an index.
func validIndex(job *batchv1.Job, pod *corev1.Pod) (int, bool) {
	index := indexOf(pod)
	return index, index != noIndex && index < int(completions(job))
}

// indexesOf returns the indexes of Pods.
func indexesOf(pods []*corev1.Pod) intervals {
	var indexes []int
	for _, pod := range pods {
		if index := indexOf(pod); index != noIndex {
			indexes = append(indexes, index)
		}
	}
	return indexSet(indexes)
}

// byIndex orders Pods by their indexes, so that indexes complete in order and their text is short.
func byIndex(a, b *corev1.Pod) int { return cmp.Compare(indexOf(a), indexOf(b)) }

// surplus returns the active Pods to delete, n of them or more: in an indexed Job those without a
// valid index, and all but one of each index, go in any case.
func (s *state) surplus(n int) []*corev1.Pod {
	rank := podrank.New(podrank.Options{Now: s.now, IgnoreCost: true})
	remove, left := []*corev1.Pod(nil), s.activePods
	if indexed(s.job) {
		remove, left = duplicates(s.job, s.activePods, rank)
	}
	if len(remove) < n {
		remove = append(remove, owned.Surplus(left, n-len(remove), rank)...)
	}
	return remove
}

// duplicates divides active Pods into those whose index is not valid or has a better Pod, and the
// others.
func duplicates(job *batchv1.Job, pods []*corev1.Pod, rank owned.Rank[*corev1.Pod]) (remove, left []*corev1.Pod) {
	of := map[int][]*corev1.Pod{}
	for _, pod := range slices.SortedStableFunc(slices.Values(pods), byIndex) {
		if index, ok := validIndex(job, pod); ok {
			of[index] = append(of[index], pod)
			continue
		}
		remove = append(remove, pod)
	}
	for _, pod := range slices.SortedStableFunc(slices.Values(pods), byIndex) {
		same := of[indexOf(pod)]
		if len(same) == 0 || same[0] != pod {
			continue
		}
		sorted := owned.Surplus(same, len(same), rank)
		remove = append(remove, sorted[:len(sorted)-1]...)
		left = append(left, sorted[len(sorted)-1])
	}
	return remove, left
}

// failuresOf returns how many Pods of the index had failed before a Pod, and how many of these
// failures count, by its annotations. What is not a number counts as 0.
func failuresOf(pod *corev1.Pod) (counted, all int32) {
	counted = countIn(pod, batchv1.JobIndexFailureCountAnnotation)
	ignored := countIn(pod, batchv1.JobIndexIgnoredFailureCountAnnotation)
	return counted, int32(min(int64(counted)+int64(ignored), math.MaxInt32))
}

func countIn(pod *corev1.Pod, annotation string) int32 {
	n, _ := parseCount(pod.Annotations[annotation])
	return n
}

// parseCount reads a number of failures. It returns 0 and false for a text that is none.
func parseCount(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, false
	}
	return int32(n), true
}

// sayUnreadable adds Events about annotations from which the controller cannot read the number that it
// wrote: another client has changed them, or has made the Pod.
func (p *plan) sayUnreadable() {
	if !indexed(p.job) {
		return
	}
	for _, pod := range p.remove {
		if indexOf(pod) == noIndex {
			p.events.Warning(reasonUnreadable, actionReconcile, "Pod %s has the annotation %s=%q, which is no index: it counts for no index of the Job, and is deleted",
				pod.Name, batchv1.JobCompletionIndexAnnotation, pod.Annotations[batchv1.JobCompletionIndexAnnotation])
		}
	}
	for _, index := range p.create {
		pod := p.retiring[index]
		if pod == nil {
			continue
		}
		for _, annotation := range []string{batchv1.JobIndexFailureCountAnnotation, batchv1.JobIndexIgnoredFailureCountAnnotation} {
			text, is := pod.Annotations[annotation]
			if _, ok := parseCount(text); is && !ok {
				p.events.Warning(reasonUnreadable, actionReconcile, "Pod %s has the annotation %s=%q, which is no number of failures: earlier failures of index %d do not count",
					pod.Name, annotation, text, index)
			}
		}
	}
}
