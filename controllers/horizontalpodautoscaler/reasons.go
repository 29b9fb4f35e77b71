// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/setpoint-io/setpoint/controller"
)

// Codes of the reasons why the size of a target stays as it is, or is not what its metrics ask for.
const (
	codeNoScale    = "ScaleCannotBeRead"
	codeDisabled   = "TargetAtZero"
	codeSelector   = "SelectorCannotBeUsed"
	codeMetrics    = "MetricsUnknown"
	codeTolerance  = "MetricsAtTarget"
	codeStabilized = "RecommendationStabilized"
	codeLimited    = "RecommendationLimited"
	codeNotWritten = "SizeRefused"
	codeAnnotation = "ForeignPodsCount"
)

// because adds a reason.
func (p *plan) because(code, text, ends string, params ...any) {
	p.reasons = append(p.reasons, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
}

// normal adds that all is as it should be.
func (p *plan) normal(code, text, ends string, params ...any) {
	p.because(code, text, ends, params...)
	p.reasons[len(p.reasons)-1].Normal = true
}

// explain adds why the size is not the one that the metrics ask for, or why it stays.
func (p *plan) explain(s *snapshot, a ask, is answer) {
	switch {
	case is.stabilized != a.recommended:
		ends := "a metric changes"
		if !is.until.IsZero() {
			ends = "the recommendation that holds the size leaves its window at " + is.until.UTC().Format(time.RFC3339)
		}
		p.because(codeStabilized, "the metrics ask for {recommended} {recommended?replica|replicas}, and the stabilization window leaves {stabilized}", ends,
			"recommended", a.recommended, "stabilized", is.stabilized)
	case a.recommended == a.current:
		p.normal(codeTolerance, "the metrics ask for the {replicas} {replicas?replica|replicas} that the target {target} has", "a metric changes",
			"replicas", a.current, "target", targetOf(s.hpa))
	}
	if is.replicas != is.stabilized {
		p.because(codeLimited, "{wanted} {wanted?replica is|replicas are} wanted, and {replicas} {replicas?is|are} allowed: {limit}", limitEnds(is.limited[0]),
			"wanted", is.stabilized, "replicas", is.replicas, "limit", is.limited[1])
	}
}

// limitEnds says what ends a limit.
func limitEnds(reason string) string {
	switch reason {
	case reasonTooFew:
		return "a metric asks for more, or spec.minReplicas becomes smaller"
	case reasonTooMany:
		return "a metric asks for less, or spec.maxReplicas becomes larger"
	}
	return "time passes: the next run may go further"
}

// targetOf names the target of a HorizontalPodAutoscaler.
func targetOf(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	return hpa.Spec.ScaleTargetRef.Kind + " " + hpa.Spec.ScaleTargetRef.Name
}
