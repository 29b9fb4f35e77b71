// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// Codes of the reasons why no Pod of a Job starts, or why the Job does not end.
const (
	codeBackoff       = "PodsFailed"
	codeDeleted       = "JobIsDeleted"
	codeEnds          = "JobEnds"
	codeFinished      = "JobIsFinished"
	codeManaged       = "ManagedByAnother"
	codeNoGang        = "NoPodGroup"
	codeNoParallelism = "ParallelismIsZero"
	codeNoPodGroup    = "PodGroupNotMade"
	codePodsRun       = "PodsRun"
	codePodsTerminate = "PodsTerminate"
	codeSuspended     = "Suspended"
	codeUnknownMode   = "UnknownCompletionMode"
	codeUnschedulable = "PodsUnschedulable"
)

// reason makes a reason from its parts.
func reason(code, text, ends string, params ...any) controller.Reason {
	return controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends}
}

// because adds a reason why no Pod starts.
func (p *plan) because(code, text, ends string, params ...any) {
	p.reasons = append(p.reasons, reason(code, text, ends, params...))
}

// normal adds that the Job is as it should be.
func (p *plan) normal(code, text, ends string, params ...any) {
	p.because(code, text, ends, params...)
	p.reasons[len(p.reasons)-1].Normal = true
}

// explainWork says that Pods run, and that no others start meanwhile.
func (p *plan) explainWork(want int32) {
	switch {
	case want == 0 && parallelism(p.job) == 0:
		p.because(codeNoParallelism, "spec.parallelism is 0", "spec.parallelism grows")
		return
	case p.active == 0 || len(p.remove) > 0:
		return
	}
	n, first := 0, ""
	for _, pod := range p.activePods {
		if c := podstate.Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			if n++; n == 1 || c.Message < first {
				first = c.Message
			}
		}
	}
	if n > 0 {
		p.because(codeUnschedulable, "{count} of {pods} {pods?Pod has|Pods have} no node: {message}", "a node has room for them",
			"count", n, "pods", p.active, "message", first)
	}
	p.normal(codePodsRun, "{active} {active?Pod runs|Pods run}, which is as many as the Job wants now: {succeeded} {succeeded?has|have} succeeded and {failed} {failed?has|have} failed", "one of them ends",
		"active", p.active, "succeeded", p.succeeded, "failed", p.failed)
}

// explainStop says why the active Pods of a Job that fails are deleted, if their logs go with
// them.
func (p *plan) explainStop() {
	if p.verdict.success || holds(p.job, p.verdict.interim()) != nil || !p.restartsTooOften() {
		return
	}
	if words := p.lastWords(); words != "" {
		p.events.Warning(reasonRestarts, actionReconcile, "%s", words)
	}
}

// explainEnd says what a Job that ends waits for.
func (p *plan) explainEnd() {
	p.because(codeEnds, "the Job ends ({reason}), and {count} of its Pods {count?is|are} still ending", "they have ended",
		"reason", p.verdict.reason, "count", p.active+p.terminating)
}
