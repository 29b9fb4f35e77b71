// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// plan is what is to be done about a Job. It goes through four steps, with writes between them:
//
//	decide ─▶ creates and deletes ─▶ account ─▶ status ─▶ finalizers ─▶ settle ─▶ status
type plan struct {
	*state
	status      batchv1.JobStatus // to be written
	nextBackoff backoff           // with the Pods that have ended since
	verdict     *verdict          // nil as long as the Job goes on
	action      string            // what the run is about, for the metrics
	// judged has how many of the Pods in strip each action of the Pod failure policy decided about.
	judged map[batchv1.PodFailurePolicyAction]int

	// create has the index of each Pod to create, noIndex in a Job without indexes.
	create []int
	// remove are active Pods that are too many. They lose their finalizers first, since they
	// count neither as succeeded nor as failed.
	remove []*corev1.Pod
	// stop are active Pods of a Job that ends. They keep their finalizers until they are counted.
	stop []*corev1.Pod
	// strip are Pods that lose their finalizers, as the status has them.
	strip []*corev1.Pod

	left       map[types.UID]bool // Pods that have the finalizer
	managed    bool               // the number of Pods follows the spec
	incomplete bool               // a delete has failed, so the Job cannot end yet
	more       bool               // there is more to do than one run does

	after   time.Duration // until the next run; 0 is none
	events  events.List   // recorded when the status is written
	reasons []controller.Reason
}

// decide returns what is to be created and deleted. It changes nothing.
func decide(v view) *plan {
	s := observe(v)
	p := &plan{
		state: s, status: *v.job.Status.DeepCopy(), nextBackoff: v.backoff.with(s.newSucceeded, s.newFailed), left: map[types.UID]bool{},
		action: reconciling, judged: map[batchv1.PodFailurePolicyAction]int{},
	}
	p.nextBackoff = p.nextBackoff.notAfter(v.now)
	for _, pod := range v.pods {
		if tracked(pod) {
			p.left[pod.UID] = true
		}
	}
	if p.status.UncountedTerminatedPods == nil {
		p.status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	if p.status.StartTime == nil && !suspended(v.job) {
		p.status.StartTime = &metav1.Time{Time: v.now}
	}
	p.verdict = s.verdict()
	switch {
	case p.verdict != nil:
		p.stop = s.activePods
		p.explainStop()
	case v.job.DeletionTimestamp != nil:
		p.because(codeDeleted, "the Job is being deleted", "")
	case suspended(v.job):
		p.managed, p.remove, p.action = true, s.activePods, podsDeleted
		p.because(codeSuspended, "the Job is suspended", "spec.suspend becomes false")
	default:
		p.managed = true
		p.scale()
		p.sayUnreadable()
	}
	if left := s.deadline(); left != noDeadline && p.verdict == nil {
		p.wake(left)
	}
	return p
}

// wake asks for another run after a time.
func (p *plan) wake(after time.Duration) {
	if after > 0 && (p.after == 0 || after < p.after) {
		p.after = after
	}
}

// created notes that Pods were created.
func (p *plan) created(n int) { p.active += count32(n) }

// deleted notes that Pods were deleted.
func (p *plan) deleted(pods []*corev1.Pod) {
	for _, pod := range pods {
		p.active--
		p.terminating++
		if podstate.Ready(pod) {
			p.ready--
		}
	}
}

// untracked notes that Pods have no finalizer any more.
func (p *plan) untracked(pods []*corev1.Pod) {
	for _, pod := range pods {
		delete(p.left, pod.UID)
	}
}

// account writes into the status which Pods have ended, and chooses those whose finalizers can
// then be removed.
func (p *plan) account() {
	p.conclude()
	p.count()
	pods := p.pods
	if indexed(p.job) {
		pods = slices.SortedStableFunc(slices.Values(pods), byIndex)
	}
	listed := 0
	for _, pod := range pods {
		if !p.left[pod.UID] || !p.canStrip(pod) {
			continue
		}
		p.strip = append(p.strip, pod)
		listed += p.list(pod)
		uncounted := p.status.UncountedTerminatedPods
		if listed+len(uncounted.Succeeded)+len(uncounted.Failed) >= p.options.MaxUncounted {
			p.more = true
			break
		}
	}
	if indexed(p.job) {
		p.status.Succeeded, p.status.CompletedIndexes = count32(p.completed.size()), p.completed.String()
		if backsOffPerIndex(p.job) {
			p.status.FailedIndexes = new(p.failedIndexes.String())
		}
	}
	if p.verdict != nil && holds(p.job, p.verdict.interim()) == nil {
		set(&p.status, p.verdict.interim(), corev1.ConditionTrue, p.verdict.reason, p.verdict.message, p.now)
	}
	p.status.Active, p.status.Ready, p.status.Terminating = p.active, new(p.ready), new(p.terminating)
}

// canStrip reports whether a Pod needs its finalizer no longer, once the status has it.
func (p *plan) canStrip(pod *corev1.Pod) bool {
	switch {
	case p.job.DeletionTimestamp != nil, p.verdict != nil, pod.Status.Phase == corev1.PodSucceeded:
		return true
	case !hasFailed(p.job, pod):
		return false
	}
	return p.retiring[indexOf(pod)] != pod
}

// list lists a Pod as one that has ended. It returns 1 if an index says so in the place of the
// list, and 0 otherwise.
func (p *plan) list(pod *corev1.Pod) int {
	if p.recorded[pod.UID] {
		return 0
	}
	index, valid := validIndex(p.job, pod)
	uncounted := p.status.UncountedTerminatedPods
	switch {
	case pod.Status.Phase == corev1.PodSucceeded && indexed(p.job):
		if valid && !p.completedBefore.has(index) {
			return 1
		}
	case pod.Status.Phase == corev1.PodSucceeded:
		uncounted.Succeeded = append(uncounted.Succeeded, pod.UID)
	case indexed(p.job) && !valid:
	case hasFailed(p.job, pod), p.verdict != nil && !p.verdict.success:
		// A Pod that runs when its Job fails has failed too.
		ruling := judge(p.job.Spec.PodFailurePolicy, pod)
		if ruling.action != "" {
			p.judged[ruling.action]++
		}
		if ruling.counts() {
			uncounted.Failed = append(uncounted.Failed, pod.UID)
		}
	}
	return 0
}

// count moves the Pods that have no finalizer any more from the lists of the status to its
// counters.
func (p *plan) count() {
	uncounted := p.status.UncountedTerminatedPods
	for _, of := range []struct {
		list    *[]types.UID
		counter *int32
	}{{&uncounted.Succeeded, &p.status.Succeeded}, {&uncounted.Failed, &p.status.Failed}} {
		var open []types.UID
		for _, uid := range *of.list {
			if p.left[uid] {
				open = append(open, uid)
			} else {
				*of.counter++
			}
		}
		*of.list = open
	}
}

// settle counts the Pods that have lost their finalizers, and ends the Job when nothing is left
// to count.
func (p *plan) settle(stripped []*corev1.Pod) {
	p.untracked(stripped)
	p.count()
	if p.verdict == nil || p.more || len(stripped) < len(p.strip) {
		return
	}
	uncounted := p.status.UncountedTerminatedPods
	if len(uncounted.Succeeded)+len(uncounted.Failed) > 0 || p.active > 0 || p.terminating > 0 {
		p.explainEnd()
		return
	}
	p.finish()
}

// finish states the end of the Job.
func (p *plan) finish() {
	set(&p.status, p.verdict.final(), corev1.ConditionTrue, p.verdict.reason, p.verdict.message, p.now)
	if p.status.StartTime == nil && completions(p.job) > 0 {
		// A Job that was suspended, and whose last Pod succeeded nevertheless. The server
		// refuses the end of a Job that has not started.
		p.status.StartTime = &metav1.Time{Time: p.now}
	}
	if !p.verdict.success {
		p.events.Warning(p.verdict.reason, actionReconcile, "%s", p.verdict.message)
		return
	}
	p.status.CompletionTime = &metav1.Time{Time: p.now}
	if !endsWithAny(p.job) && p.status.Succeeded > completions(p.job) {
		p.events.Warning(reasonTooManySucceeded, actionReconcile, "Too many succeeded pods running after completion count reached")
	}
	p.events.Normal(reasonCompleted, actionReconcile, "Job completed")
}
