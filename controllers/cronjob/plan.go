// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/seconds"
)

// view is what a decision about a CronJob depends on.
type view struct {
	cronJob *batchv1.CronJob
	jobs    []*batchv1.Job // those that the CronJob controls
	now     time.Time
	memory  memory
}

// memory is what the controller remembers of a CronJob between two runs. None of it is needed
// after a restart: it keeps Events from being repeated, and tells why slots were missed.
type memory struct {
	uid      types.UID
	schedule string // the last one that could be parsed, with its time zone
	seen     string // the last one, with its time zone
	// since is the time at which the schedule changed while this controller ran. Earlier slots
	// of the new schedule are not missed: they never were.
	since time.Time
	// told is the last slot that an Event said was missed.
	told time.Time
	// held is the last slot that a running Job delayed.
	held time.Time
	// suspended is the last time at which the CronJob was suspended.
	suspended time.Time
}

// plan is what is to be done about a CronJob.
type plan struct {
	status batchv1.CronJobStatus
	events events.List
	// expired are finished Jobs beyond the limits of the history.
	expired []*batchv1.Job
	// replace are running Jobs that make place for a new one.
	replace []*batchv1.Job
	// slot is the time for which a Job starts, or the zero time.
	slot time.Time
	// after is how long until the next slot. 0 is none.
	after  time.Duration
	memory memory
	// reasons are why no Job starts.
	reasons []controller.Reason
}

// pad is added to each wait, for clocks that differ a little.
// Source: k8s.io/kubernetes/pkg/controller/cronjob, nextScheduleDelta.
const pad = 100 * time.Millisecond

// decide returns what is to be done. It changes nothing.
func decide(v view) plan {
	p := plan{status: *v.cronJob.Status.DeepCopy(), memory: v.memory}
	p.follow(v)
	p.expire(v)
	if v.cronJob.DeletionTimestamp != nil {
		p.because(codeDeleted, "the CronJob is being deleted", "")
		return p // its Jobs go with it
	}
	schedule, ok := p.schedule(v)
	if !ok {
		p.cannotUse(v)
		return p
	}
	if v.cronJob.Spec.Suspend != nil && *v.cronJob.Spec.Suspend {
		p.memory.suspended = v.now
		p.because(codeSuspended, "the CronJob is suspended", "spec.suspend becomes false")
		return p
	}
	p.sayFuture(v)
	anchor := p.anchor(v)
	latest := schedule.latest(anchor, v.now)
	next := schedule.next(anchor)
	if !latest.IsZero() {
		p.start(v, schedule, anchor, latest)
		// One Job a minute starts, so the other slots of the minute need no run.
		next = schedule.next(schedule.latest(anchor, minuteOf(latest).Add(59*time.Second)))
	}
	p.wake(v, next)
	if p.slot.IsZero() && len(p.reasons) == 0 {
		p.normal(codeNotDue, "the next Job starts at {time}", "the time comes", "time", local(next))
	}
	return p
}

// sayFuture says that the last start lies in the future, by more than clocks differ. Nothing starts before
// that time, as in upstream, which says nothing.
func (p *plan) sayFuture(v view) {
	last := p.status.LastScheduleTime
	if last == nil || !last.After(v.now.Add(time.Minute)) {
		return
	}
	p.events.Warning(reasonFuture, actionReconcile, "status.lastScheduleTime is %s, which is in the future: no Job starts before that time. "+
		"A clock was wrong, or a client wrote it. To set it back: kubectl edit cronjob %s --namespace %s --subresource=status", clock(last.Time), v.cronJob.Name, v.cronJob.Namespace)
	p.because(codeFuture, "the status says that the last Job starts at {time}, which is in the future", "that time comes, or status.lastScheduleTime is set back", "time", local(last.Time))
}

// wake asks for another run at a slot.
func (p *plan) wake(v view, slot time.Time) {
	if !slot.IsZero() {
		p.after = max(slot.Add(pad).Sub(v.now), pad)
	}
}

// start decides whether the Job of a slot starts. The slot is the last one that has passed since
// the anchor. Earlier ones are missed.
func (p *plan) start(v view, schedule slots, anchor, slot time.Time) {
	spec := &v.cronJob.Spec
	if deadline := spec.StartingDeadlineSeconds; deadline != nil && slot.Add(seconds.Duration(*deadline)).Before(v.now) {
		p.miss(v, schedule, anchor, slot)
		p.because(codeTooLate, "the start at {time} is over: startingDeadlineSeconds is {seconds}", "the next start", "time", local(slot), "seconds", *deadline)
		return
	}
	if p.hasStarted(v, slot) {
		return
	}
	switch spec.ConcurrencyPolicy {
	case batchv1.AllowConcurrent:
	case batchv1.ForbidConcurrent:
		if len(p.status.Active) > 0 {
			if !p.memory.held.Equal(slot) {
				p.events.Normal(reasonAlreadyActive, actionReconcile, "Not starting job because prior execution is running and concurrency policy is Forbid")
			}
			p.memory.held = slot
			p.because(codeJobRuns, "the Job {job} still runs, and concurrencyPolicy is Forbid: the start at {time} waits", "the Job ends",
				"job", p.status.Active[0].Name, "time", local(slot))
			return
		}
	case batchv1.ReplaceConcurrent:
		for _, job := range v.jobs {
			if p.isActive(job.UID) {
				p.replace = append(p.replace, job)
			}
		}
	}
	if before := lastMissed(schedule, anchor, slot); !before.IsZero() {
		p.miss(v, schedule, anchor, before)
	}
	p.slot = slot
}

// hasStarted reports whether the Job of a slot exists. With several slots a minute it may be that of an
// earlier one.
func (p *plan) hasStarted(v view, slot time.Time) bool {
	name := jobName(v.cronJob, slot)
	for _, job := range v.jobs {
		if job.Name != name || job.DeletionTimestamp != nil {
			continue
		}
		if _, ok := slotOf(v.cronJob, job); !ok {
			p.started(job, slot) // its annotation has been changed
		}
		return true
	}
	return p.runs(name)
}

// lastMissed returns the last slot between the anchor and a slot that starts its Job. With several slots
// a minute, those in the minutes of the two are not missed: one Job a minute starts.
func lastMissed(schedule slots, anchor, slot time.Time) time.Time {
	if e, ok := schedule.(every); !ok || time.Duration(e) >= time.Minute {
		return schedule.latest(anchor, slot.Add(-time.Second))
	}
	if before := schedule.latest(anchor, minuteOf(slot).Add(-time.Second)); minuteOf(before).After(minuteOf(anchor)) {
		return before
	}
	return time.Time{}
}

// minuteOf returns when the minute begins that gives the Job of a slot its name.
func minuteOf(slot time.Time) time.Time { return time.Unix(slot.Unix()/60*60, 0) }

// schedule parses the schedule, and reports whether there is one. An edit of the CronJob is
// what ends a mistake in it.
func (p *plan) schedule(v view) (slots, bool) {
	spec := &v.cronJob.Spec
	zone := ""
	if spec.TimeZone != nil {
		zone = *spec.TimeZone
		if _, err := time.LoadLocation(zone); err != nil {
			p.events.Warning(reasonUnknownTimeZone, actionReconcile, "invalid timeZone: %q: %s", zone, err)
			return nil, false
		}
	}
	text := spec.Schedule + " " + zone
	edited := p.memory.seen != "" && p.memory.seen != text
	p.memory.seen = text
	s, err := parse(spec.Schedule, zone)
	if edited && err != nil && !errors.Is(err, errNever) {
		p.events.Warning(reasonUnparseableEdit, actionReconcile, "unparseable schedule for cronjob: %s", spec.Schedule)
		return nil, false
	}
	if namesZone(spec.Schedule) {
		p.events.Warning(reasonUnsupported, actionReconcile, "CRON_TZ or TZ used in schedule %q is not officially supported, "+
			"see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", spec.Schedule)
	}
	switch {
	case errors.Is(err, errNever):
		p.events.Warning(reasonInvalid, actionReconcile, "invalid schedule: %s : %s", spec.Schedule, err)
		return nil, false
	case err != nil:
		p.events.Warning(reasonUnparseable, actionReconcile, "unparseable schedule: %q : %s", spec.Schedule, err)
		return nil, false
	}
	if e, ok := s.(every); ok && time.Duration(e) < time.Minute {
		p.events.Warning(reasonUnsupported, actionReconcile, "the schedule %q has several start times a minute, and a Job's name has only the minute: "+
			"only one Job a minute starts", spec.Schedule)
	}
	if p.memory.schedule != "" && p.memory.schedule != text {
		p.memory.since = v.now
	}
	p.memory.schedule = text
	return s, true
}

// anchor returns the time from which slots count: that of the last Job, or the creation of the
// CronJob, or a later change of the schedule.
func (p *plan) anchor(v view) time.Time {
	at := v.cronJob.CreationTimestamp.Time
	if last := p.status.LastScheduleTime; last != nil {
		at = last.Time
	}
	if p.memory.since.After(at) {
		at = p.memory.since
	}
	return at
}
