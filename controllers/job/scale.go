// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
)

// wanted returns how many Pods are to be active.
func (s *state) wanted() int32 {
	if endsWithAny(s.job) {
		if s.succeeded > 0 {
			return s.active // the others run to their ends
		}
		return parallelism(s.job)
	}
	return max(0, min(completions(s.job)-s.succeeded, parallelism(s.job)))
}

// scale decides which Pods to delete or to create. A run does one of both: deletes come first.
func (p *plan) scale() {
	want := p.wanted()
	p.action = tracking
	p.remove = p.surplus(int(max(0, p.active-want)))
	if len(p.remove) > p.options.Burst {
		p.remove, p.more = p.remove[:p.options.Burst], true
	}
	if len(p.remove) > 0 {
		p.action = podsDeleted
	}
	missing := want - p.active
	if len(p.remove) > 0 || missing <= 0 {
		p.explainWork(want)
		return
	}
	if replacesOnlyFailed(p.job) {
		if missing -= p.terminating; missing <= 0 {
			p.because(codePodsTerminate, "{count} {count?Pod is|Pods are} still ending, and podReplacementPolicy is Failed", "they have ended", "count", p.terminating)
			return
		}
	}
	if p.hold != nil {
		p.reasons = append(p.reasons, *p.hold)
		return
	}
	p.grow(int(missing))
}

// grow chooses the Pods to create, n of them at most. Pods that have failed delay it.
func (p *plan) grow(n int) {
	p.action = podsCreated
	if !backsOffPerIndex(p.job) {
		if left := p.nextBackoff.left(p.now); left > 0 {
			p.wait(left)
			p.because(codeBackoff, "{failures} {failures?Pod has|Pods have} failed in a row, so the next one starts at {time}", "the time comes",
				"failures", p.nextBackoff.failures, "time", p.now.Add(left).Format(time.RFC3339))
			return
		}
	}
	if n > p.options.Burst {
		n, p.more = p.options.Burst, true
	}
	if !indexed(p.job) {
		for range n {
			p.create = append(p.create, noIndex)
		}
		return
	}
	p.create = p.pendingIndexes(n)
	if backsOffPerIndex(p.job) {
		p.create = p.due(p.create)
	}
}

// wait asks for another run when a backoff is over, and not sooner than other changes would.
func (p *plan) wait(left time.Duration) { p.wake(max(left, p.options.Batch)) }

// pendingIndexes returns the first n indexes that have neither ended nor an active Pod.
func (s *state) pendingIndexes(n int) []int {
	busy := s.completed.union(s.failedIndexes).union(indexesOf(s.activePods))
	if replacesOnlyFailed(s.job) {
		var terminating []*corev1.Pod
		for _, pod := range s.pods {
			if podstate.Terminating(pod) {
				terminating = append(terminating, pod)
			}
		}
		busy = busy.union(indexesOf(terminating))
	}
	return busy.missing(n, int(completions(s.job)))
}

// due returns those of some indexes whose backoff is over. The others keep their place among the
// Pods that run at a time.
func (p *plan) due(indexes []int) []int {
	var now []int
	first := time.Duration(0)
	for _, index := range indexes {
		left := time.Duration(0)
		if pod := p.retiring[index]; pod != nil {
			left = indexBackoff(pod, p.now).left(p.now)
		}
		if left == 0 {
			now = append(now, index)
		} else if first == 0 || left < first {
			first = left
		}
	}
	if first > 0 {
		p.wait(first)
		p.because(codeBackoff, "Pods of {count} {count?index|indexes} have failed, and the first one starts again at {time}", "the time comes",
			"count", len(indexes)-len(now), "time", p.now.Add(first).Format(time.RFC3339))
	}
	return now
}

// conclude decides, after the creates and deletes, whether the Job is complete or suspended.
func (p *plan) conclude() {
	switch {
	case p.verdict != nil:
		if p.incomplete {
			p.verdict = nil // the Pods that are left could still succeed or fail
		}
	case p.isComplete():
		p.verdict = &verdict{success: true, reason: batchv1.JobReasonCompletionsReached, message: "Reached expected number of succeeded pods"}
	case !p.managed:
	case suspended(p.job):
		if set(&p.status, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended", p.now) {
			p.events.Normal(reasonSuspended, actionReconcile, "Job suspended")
			if !p.options.KeepStartTime {
				p.status.StartTime = nil
			}
		}
	default:
		if set(&p.status, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed", p.now) {
			p.events.Normal(reasonResumed, actionReconcile, "Job resumed")
			// activeDeadlineSeconds counts from now.
			p.status.StartTime = &metav1.Time{Time: p.now}
		}
	}
}

// isComplete reports whether enough Pods have succeeded, and none runs any more.
func (p *plan) isComplete() bool {
	if p.active > 0 {
		return false
	}
	if endsWithAny(p.job) {
		return p.succeeded > 0
	}
	return p.succeeded >= completions(p.job)
}
