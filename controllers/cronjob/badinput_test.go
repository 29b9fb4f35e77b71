// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"bytes"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestADeadlineThatIsLongerThanADurationIsNoDeadline(t *testing.T) {
	for _, seconds := range []int64{9_223_372_036, 9_223_372_037, 10_000_000_000, 99_999_999_999, math.MaxInt64} {
		c := hourly(func(c *batchv1.CronJob) { c.Spec.StartingDeadlineSeconds = &seconds })
		if p := decide(view{cronJob: c, now: at(1, 30)}); !p.slot.Equal(at(1, 0)) || p.eventReasons() != "" {
			t.Errorf("with a deadline of %d seconds the slot is %s, with the Events %v", seconds, p.slot, p.events)
		}
		p := decide(view{cronJob: c, now: at(5, 30)})
		if p.said(t, reasonMissed, "no controller ran"); strings.Contains(p.events[0].Note, "startingDeadlineSeconds") {
			t.Errorf("with a deadline of %d seconds the Event says %s", seconds, p.events[0].Note)
		}
	}
}

func TestSchedulesThatCannotBeUsedAreSaidAndDelayNoOthers(t *testing.T) {
	bad := map[string]struct{ schedule, zone, reason, text string }{
		"panics": {"TZ=0", "", reasonUnparseable, `unparseable schedule: "TZ=0"`},
		"zone":   {"* * * * *", "Mars/Olympus", reasonUnknownTimeZone, `invalid timeZone: "Mars/Olympus"`},
		"words":  {"every hour", "Etc/UTC", reasonUnparseable, `unparseable schedule: "every hour"`},
		"never":  {"0 0 31 2 *", "Etc/UTC", reasonInvalid, "the schedule names no day that exists"},
		"zero":   {"*/0 * * * *", "Etc/UTC", reasonUnparseable, "unparseable schedule"},
		"huge":   {"@every 99999999999h", "Etc/UTC", reasonUnparseable, "unparseable schedule"},
		"both":   {"TZ=Mars/Olympus * * * * *", "Etc/UTC", reasonUnparseable, "unparseable schedule"},
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for name, is := range bad {
			c.create(name, is.schedule, func(c *batchv1.CronJob) {
				if c.Spec.TimeZone = nil; is.zone != "" {
					c.Spec.TimeZone = &is.zone
				}
			})
		}
		c.create("report", "0 * * * *")
		c.start()
		pass(time.Hour + pad)
		c.want("at its slot, beside the others", "01:00")
		c.api.Forget()
		pass(23 * time.Hour)
		for _, q := range c.api.Requests() {
			if key := q.Key.Name; bad[key].schedule != "" {
				t.Errorf("a request about %s: %s", key, q.String())
			}
		}
		if n := len(c.slots()); n != 24 {
			t.Errorf("after a day there are %d Jobs, want 24", n)
		}
		for name, is := range bad {
			notes := c.notes(is.reason)
			if !slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, is.text) }) {
				t.Errorf("%s: no Event %s says %q; there are %q", name, is.reason, is.text, notes)
			}
		}
	})
}

// A Job's name has the minute, so that a schedule with several slots a minute starts one of them.
func TestSeveralSlotsAMinuteCostFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "@every 1s", func(c *batchv1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit = new(int32(100)) })
		c.start()
		for range 60 {
			pass(10 * time.Second)
			for _, ref := range c.status("report").Active {
				c.finish(ref.Name, batchv1.JobComplete)
			}
		}
		if n := len(c.slots()); n < 10 || n > 11 {
			t.Errorf("in ten minutes there are %d Jobs", n)
		}
		if n := c.creates(); n > 11 {
			t.Errorf("in ten minutes a Job was created %d times", n)
		}
		if n := len(c.cronJobs.Requests()); n > 11*5+60 { // three writes of the status for each Job, and the test's own reads
			t.Errorf("in ten minutes there were %d requests about the CronJob", n)
		}
		pass(time.Minute)
		if notes := c.notes(reasonMissed); len(notes) > 0 {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestAJobThatTheServerRefusesIsSaidAndDelaysNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("bad", "0 * * * *")
		c.create("report", "0 * * * *")
		c.jobs.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" && bytes.Contains(managertest.Body(t, q), []byte("bad-")) {
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "spec.template is wrong"}
			}
			return nil
		})
		c.start()
		pass(time.Hour + pad)
		c.want("at the slot", "01:00")
		pass(time.Hour)
		c.want("an hour later", "01:00", "02:00")
		if notes := slices.Compact(c.notes(reasonNotCreated)); len(notes) != 1 || notes[0] != "Error creating job: spec.template is wrong" {
			t.Errorf("the Events say %q", notes)
		}
		if n := c.creates(); n > 40 {
			t.Errorf("in an hour a Job was created %d times", n)
		}
	})
}

func TestJobsThatOnlyLookLikeItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		cronJob := c.create("report", "0 * * * *", func(c *batchv1.CronJob) {
			c.Spec.ConcurrencyPolicy, c.Spec.SuccessfulJobsHistoryLimit = batchv1.ForbidConcurrent, new(int32(0))
		})
		// They name the CronJob as their controller. An owner owns nothing in another namespace.
		for i, ended := range []batchv1.JobConditionType{"", batchv1.JobComplete} {
			j := job(cronJob, time.Now(), ended)
			j.Namespace, j.Name = "team-b", fmt.Sprint("theirs-", i)
			if err := c.jobs.Add(j); err != nil {
				t.Fatal(err)
			}
		}
		c.start()
		pass(time.Hour + time.Second)
		if status := c.status("report"); len(status.Active) != 1 || status.LastSuccessfulTime != nil {
			t.Errorf("the status is %+v", status)
		}
		if notes := append(c.notes(reasonUnexpected), c.notes(reasonAlreadyActive)...); len(notes) > 0 {
			t.Errorf("the Events say %q", notes)
		}
		for i := range 2 {
			if c.jobs.Get(object.Key{Namespace: "team-b", Name: fmt.Sprint("theirs-", i)}) == nil {
				t.Errorf("the Job theirs-%d of another namespace was deleted", i)
			}
		}
	})
}

func TestTimesOfJobsThatAreNoTimes(t *testing.T) {
	for _, text := range []string{"", "yesterday", "1700000000", "2026-03-02", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "2026-13-45T99:00:00Z"} {
		c := hourly()
		j := job(c, at(1, 0), "")
		j.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = text
		p := decide(view{cronJob: c, jobs: []*batchv1.Job{j}, now: at(0, 30)})
		if p.status.LastScheduleTime != nil || len(p.status.Active) > 0 || p.after != 30*time.Minute+pad {
			t.Errorf("with the annotation %q the status is %+v, and the next run is in %s", text, p.status, p.after)
		}
		p.said(t, reasonUnexpected, "Saw a job that the controller did not create or forgot: "+j.Name)
	}
}

func TestALastStartInTheFutureIsSaid(t *testing.T) {
	c := hourly()
	c.Status.LastScheduleTime = new(metav1.NewTime(at(24, 0)))
	p := decide(view{cronJob: c, now: at(1, 30)})
	if !p.slot.IsZero() || p.eventReasons() != reasonFuture || p.after != 23*time.Hour+30*time.Minute+pad {
		t.Errorf("the slot is %s, the next run in %s, with the Events %v", p.slot, p.after, p.events)
	}
	p.said(t, reasonFuture, "status.lastScheduleTime is Tue, 03 Mar 2026 10:00:00 +0000, which is in the future: no Job starts before that time.")
	if len(p.reasons) != 1 || p.reasons[0].Code != codeFuture {
		t.Errorf("the reasons are %v", p.reasons)
	}
	c.Status.LastScheduleTime = new(metav1.NewTime(at(1, 30))) // clocks differ by seconds
	if p := decide(view{cronJob: c, now: at(1, 29)}); p.eventReasons() != "" {
		t.Errorf("the Events are %v", p.events)
	}
}
