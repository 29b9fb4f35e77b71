// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"time"

	"github.com/setpoint-io/setpoint/controller"
)

// Codes of the reasons why a CronJob starts no Job.
const (
	codeNotDue      = "NextStartNotDue"
	codeSuspended   = "Suspended"
	codeJobRuns     = "JobStillRuns"
	codeTooLate     = "StartingDeadlineOver"
	codeBadSchedule = "ScheduleCannotBeUsed"
	codeDeleted     = "CronJobIsDeleted"
	codeNameTaken   = "JobNameTaken"
	codeFuture      = "LastStartInFuture"
)

// because adds a reason why no Job starts.
func (p *plan) because(code, text, ends string, params ...any) {
	p.reasons = append(p.reasons, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
}

// normal adds that all is as it should be.
func (p *plan) normal(code, text, ends string, params ...any) {
	p.because(code, text, ends, params...)
	p.reasons[len(p.reasons)-1].Normal = true
}

// cannotUse adds that the schedule or its time zone is wrong. An Event has the error.
func (p *plan) cannotUse(v view) {
	p.because(codeBadSchedule, "the schedule {schedule} cannot be used: {event}", "spec.schedule or spec.timeZone changes",
		"schedule", v.cronJob.Spec.Schedule, "event", p.events[len(p.events)-1].Note)
}

// local writes a slot as people of the CronJob's time zone know it.
func local(slot time.Time) string { return slot.Format(time.RFC3339) }
