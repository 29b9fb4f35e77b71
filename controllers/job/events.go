// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import "fmt"

// Reasons of Events. Those of the ends of a Job are the reasons of its conditions.
// Source: k8s.io/kubernetes/pkg/controller/job.
const (
	reasonCompleted        = "Completed"
	reasonResumed          = "Resumed"
	reasonSuspended        = "Suspended"
	reasonTooManySucceeded = "TooManySucceededPods"
	reasonUnknownMode      = "UnknownCompletionMode"
	// reasonRestarts is ours. It says what a Pod that the backoff limit deletes has died of.
	reasonRestarts = "ContainerRestarts"
)

// event is an Event about a Job. It is recorded when the status is written.
type event struct {
	warning         bool
	reason, message string
}

func (p *plan) normal(reason, format string, args ...any) {
	p.events = append(p.events, event{reason: reason, message: fmt.Sprintf(format, args...)})
}

func (p *plan) warn(reason, format string, args ...any) {
	p.events = append(p.events, event{warning: true, reason: reason, message: fmt.Sprintf(format, args...)})
}
