// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/seconds"
)

// verdict says how a Job ends.
type verdict struct {
	success         bool
	reason, message string
}

// interim returns the condition that announces the end, while Pods are still counted.
func (v *verdict) interim() batchv1.JobConditionType {
	if v.success {
		return batchv1.JobSuccessCriteriaMet
	}
	return batchv1.JobFailureTarget
}

// final returns the condition that states the end.
func (v *verdict) final() batchv1.JobConditionType {
	if v.success {
		return batchv1.JobComplete
	}
	return batchv1.JobFailed
}

// verdict returns how the Job ends, or nil if it goes on. What the status has announced stands.
// Failures come before successes. Completions are not judged here: they count when no Pod runs.
//
// Source of the order, the reasons and the messages: k8s.io/kubernetes/pkg/controller/job, syncJob.
func (s *state) verdict() *verdict {
	if c := holds(s.job, batchv1.JobSuccessCriteriaMet); c != nil {
		return &verdict{success: true, reason: c.Reason, message: c.Message}
	}
	if c := holds(s.job, batchv1.JobFailureTarget); c != nil {
		return &verdict{reason: c.Reason, message: c.Message}
	}
	if v := s.failure(); v != nil {
		return v
	}
	if !indexed(s.job) {
		return nil
	}
	if message, met := meetsSuccessPolicy(s.job, s.completed); met {
		return &verdict{success: true, reason: batchv1.JobReasonSuccessPolicy, message: message}
	}
	return nil
}

// failure returns why the Job fails, or nil.
func (s *state) failure() *verdict {
	for _, pod := range s.pods {
		if !hasFailed(s.job, pod) {
			continue
		}
		if r := judge(s.job.Spec.PodFailurePolicy, pod); r.action == batchv1.PodFailurePolicyActionFailJob {
			return &verdict{reason: batchv1.JobReasonPodFailurePolicy, message: r.message}
		}
	}
	switch {
	case s.failed > backoffLimit(s.job), s.restartsTooOften():
		return &verdict{reason: batchv1.JobReasonBackoffLimitExceeded, message: "Job has reached the specified backoff limit"}
	case s.deadline() < 0:
		return &verdict{reason: batchv1.JobReasonDeadlineExceeded, message: "Job was active longer than specified deadline"}
	}
	failed := s.failedIndexes.size()
	switch most := s.job.Spec.MaxFailedIndexes; {
	case failed == 0:
		return nil
	case most != nil && failed > int(*most):
		return &verdict{reason: batchv1.JobReasonMaxFailedIndexesExceeded, message: "Job has exceeded the specified maximal number of failed indexes"}
	case failed+s.completed.size() >= int(completions(s.job)):
		return &verdict{reason: batchv1.JobReasonFailedIndexes, message: "Job has failed indexes"}
	}
	return nil
}

// restartsTooOften reports whether the containers of Pods that restart in place have restarted as
// often as Pods may fail. The API counts the first failure with a limit of 0, and the limit itself
// with others.
// Source: k8s.io/kubernetes/pkg/controller/job, pastBackoffLimitOnFailure.
func (s *state) restartsTooOften() bool {
	if s.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	n := int32(0)
	for _, pod := range s.pods {
		n += restarts(pod)
	}
	return n >= max(1, backoffLimit(s.job))
}

// restarts returns how often the containers of a Pod that runs have restarted.
func restarts(pod *corev1.Pod) int32 {
	if pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodPending {
		return 0
	}
	n := int32(0)
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			n += list[i].RestartCount
		}
	}
	return n
}

// noDeadline is the time that is left to a Job that may take any time.
const noDeadline = time.Duration(1<<63 - 1)

// deadline returns how much time is left until activeDeadlineSeconds is over, below 0 if it is.
// It does not run while the Job is suspended.
func (s *state) deadline() time.Duration {
	most := s.job.Spec.ActiveDeadlineSeconds
	if most == nil || suspended(s.job) {
		return noDeadline
	}
	left := seconds.Duration(*most)
	resumes := holds(s.job, batchv1.JobSuspended) != nil // the time starts again
	if start := s.job.Status.StartTime; start != nil && !resumes {
		left = start.Add(left).Sub(s.now)
	}
	if left == 0 {
		return -1 // it is over at that moment
	}
	return left
}

// lastWords says why the containers of the Pod that has restarted most have ended, for an Event:
// the Pod is deleted, with its logs.
func (s *state) lastWords() string {
	var worst *corev1.Pod
	for _, pod := range s.activePods {
		if restarts(pod) > 0 && (worst == nil || restarts(pod) > restarts(worst)) {
			worst = pod
		}
	}
	if worst == nil {
		return ""
	}
	for _, list := range [][]corev1.ContainerStatus{worst.Status.ContainerStatuses, worst.Status.InitContainerStatuses} {
		for i := range list {
			ended := list[i].LastTerminationState.Terminated
			if list[i].State.Terminated != nil {
				ended = list[i].State.Terminated
			}
			if ended != nil && list[i].RestartCount > 0 {
				return fmt.Sprintf("Deleting pod %s with its logs: container %s has restarted %d times and ended last with exit code %d (%s)",
					worst.Name, list[i].Name, list[i].RestartCount, ended.ExitCode, ended.Reason)
			}
		}
	}
	return ""
}
