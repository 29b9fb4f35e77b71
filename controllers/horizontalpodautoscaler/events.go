// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

// event is an Event about a HorizontalPodAutoscaler. Reasons and texts are upstream's.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler.
type event struct {
	warning         bool
	reason, message string
}

func (p *plan) normal(reason, message string) {
	p.events = append(p.events, event{reason: reason, message: message})
}

func (p *plan) warn(reason, message string) {
	p.events = append(p.events, event{warning: true, reason: reason, message: message})
}
