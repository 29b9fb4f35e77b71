// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/seconds"
)

// Reasons of Events.
// Source: k8s.io/kubernetes/pkg/controller/cronjob.
const (
	reasonAlreadyActive   = "JobAlreadyActive"
	reasonCompleted       = "SawCompletedJob"
	reasonCreated         = "SuccessfulCreate"
	reasonDeleted         = "SuccessfulDelete"
	reasonFuture          = "FutureScheduleTime" // ours
	reasonInvalid         = "InvalidSchedule"
	reasonMissed          = "MissSchedule"
	reasonMissing         = "MissingJob"
	reasonNotCreated      = "FailedCreate"
	reasonNotDeleted      = "FailedDelete"
	reasonNotRead         = "FailedGet"
	reasonTooManyMissed   = "TooManyMissedTimes"
	reasonUnexpected      = "UnexpectedJob"
	reasonUnknownTimeZone = "UnknownTimeZone"
	reasonUnparseable     = "UnparseableSchedule"
	reasonUnparseableEdit = "UnParseableCronJobSchedule"
	reasonUnsupported     = "UnsupportedSchedule"
)

// actionReconcile is the action of the Events that are decided on before the writes of a run.
// The Events about a Job that is created or deleted have actions of their own.
const actionReconcile = "Reconcile"

// tooMany is how many missed slots are worth a warning about clocks.
// Source: k8s.io/kubernetes/pkg/controller/cronjob, mostRecentScheduleTime.
const tooMany = 100

// miss records that the slots after the anchor, up to and including the last one, start no Job.
// Each slot is in one Event.
//
// kube-controller-manager has an Event for this, and never sends it: it looks for slots within
// the deadline alone.
func (p *plan) miss(v view, schedule slots, anchor, last time.Time) {
	if !last.After(p.memory.told) {
		return
	}
	if p.memory.told.After(anchor) {
		anchor = p.memory.told
	}
	first, n := schedule.next(anchor), schedule.count(anchor, last)
	why, expected := p.why(v, first, last)
	text := fmt.Sprintf("Missed scheduled time to start a job: %s", clock(last))
	if n > 1 {
		text = fmt.Sprintf("Missed %d scheduled times to start a job, from %s to %s", n, clock(first), clock(last))
	}
	p.events = append(p.events, events.Planned{Warning: !expected, Reason: reasonMissed, Action: actionReconcile, Note: text + ": " + why})
	if schedule.count(withinDeadline(v, anchor), last) > tooMany {
		p.events.Warning(reasonTooManyMissed, actionReconcile,
			"too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	p.memory.told = last
}

// withinDeadline returns the anchor, or the time before which slots have no start any more, if that is
// later. The slots before it say nothing about clocks.
func withinDeadline(v view, anchor time.Time) time.Time {
	deadline := v.cronJob.Spec.StartingDeadlineSeconds
	if deadline == nil {
		return anchor
	}
	if over := v.now.Add(-seconds.Duration(*deadline)); over.After(anchor) {
		return over
	}
	return anchor
}

// why says why slots were missed, and whether the CronJob asks for that.
func (p *plan) why(v view, first, last time.Time) (text string, expected bool) {
	switch {
	case !p.memory.held.IsZero() && !p.memory.held.Before(first):
		text, expected = "a Job was still running, and concurrencyPolicy is Forbid", true
	case !p.memory.suspended.IsZero() && !p.memory.suspended.Before(last):
		text, expected = "the CronJob was suspended", true
	default:
		text = "no controller ran at that time, or the API server refused the Job, or a clock was wrong"
	}
	if deadline := v.cronJob.Spec.StartingDeadlineSeconds; deadline != nil && last.Add(seconds.Duration(*deadline)).Before(v.now) {
		text += fmt.Sprintf("; startingDeadlineSeconds is %d", *deadline)
	}
	return text, expected
}

// clock writes a time as kube-controller-manager does in its Events.
func clock(t time.Time) string { return t.UTC().Format(time.RFC1123Z) }
