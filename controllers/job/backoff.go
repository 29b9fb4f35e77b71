// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// How long a Job waits after its Pods have failed: the first time for firstBackoff, each time
// twice as long, and never longer than mostBackoff.
// Source: k8s.io/kubernetes/pkg/controller/job, DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff.
const (
	firstBackoff = 10 * time.Second
	mostBackoff  = 10 * time.Minute
)

// backoff says how many Pods of a Job have failed since the last one that succeeded.
type backoff struct {
	failures int32
	last     time.Time // the end of the last of them
}

// with returns the backoff after more Pods have ended.
// Source: k8s.io/kubernetes/pkg/controller/job, newBackoffRecord.
func (b backoff) with(succeeded, failed []*corev1.Pod) backoff {
	var success time.Time
	for _, pod := range succeeded {
		success = later(success, finishTime(pod))
	}
	if len(succeeded) > 0 {
		b = backoff{}
	}
	for _, pod := range failed {
		if at := finishTime(pod); len(succeeded) == 0 || at.After(success) {
			b.failures++
			b.last = later(b.last, at)
		}
	}
	return b
}

// left returns how long no Pod is created.
func (b backoff) left(now time.Time) time.Duration {
	if b.failures == 0 {
		return 0
	}
	wait := firstBackoff
	for range b.failures - 1 {
		if wait *= 2; wait >= mostBackoff {
			wait = mostBackoff
			break
		}
	}
	return max(0, b.last.Add(wait).Sub(now))
}

// notAfter returns the backoff whose last failure is not later than now. The time comes from the clock of
// a kubelet, which may be ahead by hours. Upstream waits until then.
func (b backoff) notAfter(now time.Time) backoff {
	if b.last.After(now) {
		b.last = now
	}
	return b
}

// clockSkew is how far the clock of a kubelet may be ahead without being wrong.
const clockSkew = time.Minute

// indexBackoff returns that of an index, of which pod failed last. If the clock of the Pod's kubelet is
// ahead, the backoff counts from the creation of the Pod, a time that the API server has written: this is
// computed anew in each run, so it cannot be a time of this process.
func indexBackoff(pod *corev1.Pod, now time.Time) backoff {
	_, failures := failuresOf(pod)
	last := finishTime(pod)
	if last.After(now.Add(clockSkew)) {
		last = pod.CreationTimestamp.Time
	}
	return backoff{failures: failures + 1, last: last}
}

// recovered returns the backoff of a Job that this process sees for the first time, from its
// status and from the Pods that were counted and still exist. Of Pods that are gone only the
// number is known, and only as long as none has succeeded.
func recovered(job *batchv1.Job, ended []*corev1.Pod) backoff {
	var succeeded, failed []*corev1.Pod
	for _, pod := range ended {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			succeeded = append(succeeded, pod)
		case hasFailed(job, pod):
			failed = append(failed, pod)
		}
	}
	b := backoff{}.with(succeeded, failed)
	counted, uncounted := &job.Status, job.Status.UncountedTerminatedPods
	if uncounted == nil {
		uncounted = &batchv1.UncountedTerminatedPods{}
	}
	if counted.Succeeded == 0 && len(uncounted.Succeeded) == 0 && len(succeeded) == 0 {
		b.failures = max(b.failures, counted.Failed+count(uncounted.Failed))
	}
	return b
}
