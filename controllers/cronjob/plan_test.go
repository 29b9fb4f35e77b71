// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/events"
)

var began = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) // a Monday

// hourly returns a CronJob that was created at 10:00 and starts a Job each hour.
func hourly(change ...func(*batchv1.CronJob)) *batchv1.CronJob {
	c := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "report", UID: "1", CreationTimestamp: metav1.NewTime(began)},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 * * * *", ConcurrencyPolicy: batchv1.AllowConcurrent, TimeZone: new("Etc/UTC"),
			SuccessfulJobsHistoryLimit: new(int32(3)), FailedJobsHistoryLimit: new(int32(1)),
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func at(hours, minutes int) time.Time {
	return began.Add(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
}

// job returns the Job that a CronJob started at a slot. ended is how it ended, or nothing.
func job(c *batchv1.CronJob, slot time.Time, ended batchv1.JobConditionType) *batchv1.Job {
	j, err := newJob(c, slot)
	if err != nil {
		panic(err)
	}
	j.UID = types.UID(j.Name)
	j.Status.StartTime = &metav1.Time{Time: slot}
	if ended != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: ended, Status: corev1.ConditionTrue}}
	}
	if ended == batchv1.JobComplete {
		j.Status.CompletionTime = &metav1.Time{Time: slot.Add(time.Minute)}
	}
	return j
}

// running puts Jobs into the status of a CronJob as they are after their start.
func running(c *batchv1.CronJob, jobs ...*batchv1.Job) *batchv1.CronJob {
	p := plan{}
	for _, j := range jobs {
		slot, _ := slotOf(c, j)
		p.started(j, slot)
	}
	c.Status = p.status
	return c
}

func (p *plan) eventReasons() string {
	var all []string
	for _, e := range p.events {
		all = append(all, e.Reason)
	}
	return strings.Join(all, " ")
}

func (p *plan) said(t *testing.T, reason, text string) {
	t.Helper()
	for _, e := range p.events {
		if e.Reason == reason && strings.Contains(e.Note, text) {
			return
		}
	}
	t.Errorf("no Event %s says %q; there are %v", reason, text, p.events)
}

func TestAJobStartsAtItsSlot(t *testing.T) {
	p := decide(view{cronJob: hourly(), now: at(0, 59)})
	if !p.slot.IsZero() || p.after != time.Minute+pad || len(p.events) > 0 {
		t.Errorf("before the slot: slot %s, again after %s, events %v", p.slot, p.after, p.events)
	}
	p = decide(view{cronJob: hourly(), now: at(1, 0).Add(pad)})
	if !p.slot.Equal(at(1, 0)) || p.after != time.Hour || len(p.events) > 0 {
		t.Errorf("at the slot: slot %s, again after %s, events %v", p.slot, p.after, p.events)
	}
}

func TestTheNameOfAJobAndItsAnnotationHaveTheSlot(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) {
		c.Spec.TimeZone = new("Asia/Kolkata")
		c.Spec.JobTemplate.Annotations = map[string]string{"team": "a"}
		c.Spec.JobTemplate.Labels = map[string]string{"app": "report"}
	})
	j, err := newJob(c, at(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if j.Name != "report-29540820" {
		t.Errorf("the name is %s", j.Name)
	}
	if got := j.Annotations[batchv1.CronJobScheduledTimestampAnnotation]; got != "2026-03-02T16:30:00+05:30" {
		t.Errorf("the annotation is %s", got)
	}
	if j.Annotations["team"] != "a" || j.Labels["app"] != "report" || len(c.Spec.JobTemplate.Annotations) != 1 {
		t.Errorf("the template's metadata became %v %v, and the template has %v", j.Labels, j.Annotations, c.Spec.JobTemplate.Annotations)
	}
	if slot, ok := slotOf(c, j); !ok || !slot.Equal(at(1, 0)) {
		t.Errorf("the Job is of the slot %s, %v", slot, ok)
	}
}

func TestTheLatestOfManyMissedSlotsStarts(t *testing.T) {
	p := decide(view{cronJob: hourly(), now: at(24*365*2, 30)})
	if !p.slot.Equal(at(24*365*2, 0)) {
		t.Errorf("the slot is %s", p.slot)
	}
	p.said(t, reasonMissed, "Missed 17519 scheduled times to start a job, from Mon, 02 Mar 2026 11:00:00 +0000 to Wed, 01 Mar 2028 09:00:00 +0000: no controller ran")
	p.said(t, reasonTooManyMissed, "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	if again := decide(view{cronJob: hourly(), now: at(24*365*2, 30), memory: p.memory}); again.eventReasons() != "" {
		t.Errorf("a second run, after the Job could not be created, has the Events %v", again.events)
	}
}

// The advice is to set the deadline, or to make it shorter. A deadline that is short enough ends it.
func TestManyMissedSlotsAreAWarningOnlyIfTheirDeadlineIsNotOver(t *testing.T) {
	for seconds, warns := range map[int64]bool{0: true, 60: false, 100 * 60: false, 102 * 60: true, math.MaxInt64: true} {
		c := hourly(func(c *batchv1.CronJob) {
			if c.Spec.Schedule = "* * * * *"; seconds > 0 {
				c.Spec.StartingDeadlineSeconds = &seconds
			}
		})
		suspended := c.DeepCopy()
		suspended.Spec.Suspend = new(true)
		for what, m := range map[string]memory{
			"without a manager": {},
			"suspended":         decide(view{cronJob: suspended, now: at(23, 59)}).memory,
		} {
			p := decide(view{cronJob: c, now: at(24, 0).Add(30 * time.Second), memory: m})
			p.said(t, reasonMissed, "Missed 1439 scheduled times to start a job")
			if !p.slot.Equal(at(24, 0)) || strings.Contains(p.eventReasons(), reasonTooManyMissed) != warns {
				t.Errorf("%s for a day, with a deadline of %d seconds (0 is none): the slot is %s, and the Events are %v", what, seconds, p.slot, p.events)
			}
		}
	}
}

func TestASlotBeyondItsDeadlineIsMissedAndThatIsSaidOnce(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) { c.Spec.StartingDeadlineSeconds = new(int64(60)) })
	p := decide(view{cronJob: c, now: at(1, 1)})
	if !p.slot.Equal(at(1, 0)) {
		t.Errorf("within the deadline the slot is %s", p.slot)
	}
	p = decide(view{cronJob: c, now: at(1, 2)})
	if !p.slot.IsZero() || p.after != 58*time.Minute+pad {
		t.Errorf("beyond the deadline the slot is %s, again after %s", p.slot, p.after)
	}
	p.said(t, reasonMissed, "Missed scheduled time to start a job: Mon, 02 Mar 2026 11:00:00 +0000")
	p.said(t, reasonMissed, "startingDeadlineSeconds is 60")
	if again := decide(view{cronJob: c, now: at(1, 3), memory: p.memory}); again.eventReasons() != "" {
		t.Errorf("the second run has the Events %v", again.events)
	}
	// The next one starts, and nothing more is said of the first.
	next := decide(view{cronJob: c, now: at(2, 0).Add(pad), memory: p.memory})
	if !next.slot.Equal(at(2, 0)) || next.eventReasons() != "" {
		t.Errorf("the next slot is %s, with the Events %v", next.slot, next.events)
	}
}

func TestAFixedDistanceStartsAlsoWithADeadline(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) {
		c.Spec.Schedule, c.Spec.StartingDeadlineSeconds = "@every 1h", new(int64(60))
	})
	if p := decide(view{cronJob: c, now: at(1, 0).Add(pad)}); !p.slot.Equal(at(1, 0)) {
		t.Errorf("the slot is %s", p.slot)
	}
}

func TestForbidWaitsForTheRunningJobAndStartsLate(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent })
	first := job(c, at(1, 0), "")
	running(c, first)
	p := decide(view{cronJob: c, jobs: []*batchv1.Job{first}, now: at(2, 0).Add(pad)})
	if !p.slot.IsZero() || p.eventReasons() != reasonAlreadyActive {
		t.Fatalf("beside a running Job the slot is %s, with the Events %v", p.slot, p.events)
	}
	p = decide(view{cronJob: c, jobs: []*batchv1.Job{first}, now: at(2, 30), memory: p.memory})
	if p.eventReasons() != "" {
		t.Errorf("a second run for the slot has the Events %v", p.events)
	}
	p = decide(view{cronJob: c, jobs: []*batchv1.Job{first}, now: at(3, 0).Add(pad), memory: p.memory})
	if p.eventReasons() != reasonAlreadyActive {
		t.Errorf("the next slot has the Events %v", p.events)
	}
	over := job(c, at(1, 0), batchv1.JobComplete)
	p = decide(view{cronJob: c, jobs: []*batchv1.Job{over}, now: at(3, 10), memory: p.memory})
	if !p.slot.Equal(at(3, 0)) || len(p.status.Active) > 0 {
		t.Errorf("after the Job the slot is %s, active %v", p.slot, p.status.Active)
	}
	p.said(t, reasonCompleted, "Saw completed job: report-29540820, condition: Complete")
	p.said(t, reasonMissed, "Missed scheduled time to start a job: Mon, 02 Mar 2026 12:00:00 +0000: a Job was still running, and concurrencyPolicy is Forbid")
	if slices.ContainsFunc(p.events, func(e events.Planned) bool { return e.Warning }) {
		t.Errorf("what the user asked for is a warning: %v", p.events)
	}
}

func TestReplaceDeletesTheRunningJobs(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ReplaceConcurrent })
	first := job(c, at(1, 0), "")
	running(c, first)
	p := decide(view{cronJob: c, jobs: []*batchv1.Job{first}, now: at(2, 0).Add(pad)})
	if !p.slot.Equal(at(2, 0)) || len(p.replace) != 1 || p.replace[0] != first {
		t.Errorf("the slot is %s, and %d Jobs are replaced", p.slot, len(p.replace))
	}
}

func TestASuspendedCronJobStartsNothingAndItsLatestSlotWhenItIsResumed(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) { c.Spec.Suspend = new(true) })
	p := decide(view{cronJob: c, now: at(5, 30)})
	if !p.slot.IsZero() || p.after != 0 || p.eventReasons() != "" {
		t.Fatalf("suspended: slot %s, again after %s, events %v", p.slot, p.after, p.events)
	}
	p = decide(view{cronJob: hourly(), now: at(5, 40), memory: p.memory})
	if !p.slot.Equal(at(5, 0)) {
		t.Errorf("resumed: the slot is %s", p.slot)
	}
	p.said(t, reasonMissed, "Missed 4 scheduled times")
	p.said(t, reasonMissed, "the CronJob was suspended")
}

func TestANewScheduleCountsFromItsChange(t *testing.T) {
	p := decide(view{cronJob: hourly(), now: at(0, 30)})
	c := hourly(func(c *batchv1.CronJob) { c.Spec.Schedule = "*/10 * * * *" })
	p = decide(view{cronJob: c, now: at(0, 35), memory: p.memory})
	if !p.slot.IsZero() || p.after != 5*time.Minute+pad || p.eventReasons() != "" {
		t.Errorf("after the change: slot %s, again after %s, events %v", p.slot, p.after, p.events)
	}
	p = decide(view{cronJob: c, now: at(0, 40).Add(pad), memory: p.memory})
	if !p.slot.Equal(at(0, 40)) || p.eventReasons() != "" {
		t.Errorf("the first slot is %s, with the Events %v", p.slot, p.events)
	}
}

func TestMistakesInTheSpecStartNothingAndAreSaid(t *testing.T) {
	for want, change := range map[string]func(*batchv1.CronJob){
		reasonUnknownTimeZone: func(c *batchv1.CronJob) { c.Spec.TimeZone = new("Mars/Olympus") },
		reasonUnparseable:     func(c *batchv1.CronJob) { c.Spec.Schedule = "every hour" },
		reasonInvalid:         func(c *batchv1.CronJob) { c.Spec.Schedule = "0 0 31 2 *" },
		reasonUnsupported + " " + reasonUnparseable: func(c *batchv1.CronJob) { c.Spec.Schedule = "TZ=0" },
	} {
		p := decide(view{cronJob: hourly(change), now: at(50, 0)})
		if !p.slot.IsZero() || p.after != 0 || p.eventReasons() != want {
			t.Errorf("want %s: slot %s, again after %s, events %v", want, p.slot, p.after, p.events)
		}
	}
	p := decide(view{cronJob: hourly(func(c *batchv1.CronJob) { c.Spec.Schedule = "@every 30s" }), now: at(0, 0)})
	p.said(t, reasonUnsupported, "only one Job a minute")
}

func TestAJobWhoseStartIsNotInTheStatusIsNoted(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent })
	started := job(c, at(1, 0), "")
	p := decide(view{cronJob: c, jobs: []*batchv1.Job{started}, now: at(1, 5)})
	if !p.slot.IsZero() || !p.isActive(started.UID) || !p.status.LastScheduleTime.Time.Equal(at(1, 0)) || p.eventReasons() != "" {
		t.Errorf("slot %s, status %v, events %v", p.slot, p.status, p.events)
	}
	foreign := job(c, at(1, 0), "")
	foreign.Name, foreign.UID = "by-hand", "by-hand"
	p = decide(view{cronJob: c, jobs: []*batchv1.Job{foreign}, now: at(0, 5)})
	if len(p.status.Active) > 0 || p.status.LastScheduleTime != nil {
		t.Errorf("a Job that somebody else made is in the status: %v", p.status)
	}
	p.said(t, reasonUnexpected, "Saw a job that the controller did not create or forgot: by-hand")
	future := job(c, at(9, 0), "")
	if p = decide(view{cronJob: c, jobs: []*batchv1.Job{future}, now: at(0, 5)}); p.status.LastScheduleTime != nil {
		t.Errorf("a Job of the future moved the last schedule time to %s", p.status.LastScheduleTime)
	}
}

func TestAnActiveJobThatIsGoneLeavesTheStatus(t *testing.T) {
	c := hourly()
	running(c, job(c, at(1, 0), ""))
	p := decide(view{cronJob: c, now: at(1, 5)})
	if len(p.status.Active) > 0 || p.eventReasons() != reasonMissing {
		t.Errorf("active %v, events %v", p.status.Active, p.events)
	}
}

func TestFinishedJobsBeyondTheLimitsAreDeletedOldestFirst(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) { c.Spec.Suspend = new(true) })
	var jobs []*batchv1.Job
	for i := range 5 {
		jobs = append(jobs, job(c, at(5-i, 0), batchv1.JobComplete), job(c, at(5-i, 30), batchv1.JobFailed))
	}
	jobs = append(jobs, job(c, at(9, 0), ""))
	never := job(c, at(8, 30), batchv1.JobFailed)
	never.Status.StartTime = nil
	jobs = append(jobs, never)
	p := decide(view{cronJob: c, jobs: jobs, now: at(9, 5)})
	var names []string
	for _, j := range p.expired {
		slot, _ := slotOf(c, j)
		names = append(names, slot.Format("15:04"))
	}
	if got, want := strings.Join(names, " "), "11:00 12:00 11:30 12:30 13:30 14:30 15:30"; got != want {
		t.Errorf("deleted are those of %s, want %s", got, want)
	}
	if last := p.status.LastSuccessfulTime; last == nil || !last.Time.Equal(at(5, 1)) {
		t.Errorf("the last successful time is %v", last)
	}
	c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = nil, new(int32(0))
	if p = decide(view{cronJob: c, jobs: jobs, now: at(9, 5)}); len(p.expired) != 6 {
		t.Errorf("without a limit for one and 0 for the other, %d are deleted, want 6", len(p.expired))
	}
}

func TestACronJobThatIsDeletedStartsNothing(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) { c.DeletionTimestamp = &metav1.Time{Time: at(1, 0)} })
	over := job(c, at(1, 0), batchv1.JobComplete)
	running(c, job(c, at(1, 0), ""))
	p := decide(view{cronJob: c, jobs: []*batchv1.Job{over}, now: at(3, 0)})
	if !p.slot.IsZero() || p.after != 0 || len(p.status.Active) > 0 {
		t.Errorf("slot %s, again after %s, active %v", p.slot, p.after, p.status.Active)
	}
}

func TestACronJobThatStartsNothingSaysWhy(t *testing.T) {
	with := func(change func(*batchv1.CronJob)) *batchv1.CronJob { return hourly(change) }
	forbidding := with(func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent })
	first := job(forbidding, at(1, 0), "")
	running(forbidding, first)
	for _, test := range []struct {
		view view
		want string
	}{
		{view{cronJob: hourly(), now: at(0, 30)}, "NextStartNotDue: the next Job starts at 2026-03-02T11:00:00Z"},
		{view{cronJob: hourly(), now: at(1, 0).Add(pad)}, ""},
		{view{cronJob: with(func(c *batchv1.CronJob) { c.Spec.Suspend = new(true) }), now: at(3, 0)}, "Suspended: the CronJob is suspended"},
		{view{cronJob: with(func(c *batchv1.CronJob) { c.DeletionTimestamp = &metav1.Time{Time: at(1, 0)} }), now: at(3, 0)}, "CronJobIsDeleted: the CronJob is being deleted"},
		{view{cronJob: with(func(c *batchv1.CronJob) { c.Spec.StartingDeadlineSeconds = new(int64(60)) }), now: at(1, 2)},
			"StartingDeadlineOver: the start at 2026-03-02T11:00:00Z is over: startingDeadlineSeconds is 60"},
		{view{cronJob: forbidding, jobs: []*batchv1.Job{first}, now: at(2, 1)},
			"JobStillRuns: the Job report-29540820 still runs, and concurrencyPolicy is Forbid: the start at 2026-03-02T12:00:00Z waits"},
		{view{cronJob: with(func(c *batchv1.CronJob) { c.Spec.Schedule = "0 0 31 2 *" }), now: at(1, 0)},
			"ScheduleCannotBeUsed: the schedule 0 0 31 2 * cannot be used: invalid schedule: 0 0 31 2 * : the schedule names no day that exists"},
	} {
		var all []string
		p := decide(test.view)
		for _, reason := range p.reasons {
			all = append(all, reason.Code+": "+reason.Sentence())
		}
		if got := strings.Join(all, "\n"); got != test.want {
			t.Errorf("the reasons are %q, want %q", got, test.want)
		}
	}
}
