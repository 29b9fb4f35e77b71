// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestJobsGoInTheBackgroundWithTheirEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "0 * * * *", func(c *batchv1.CronJob) {
			c.Spec.ConcurrencyPolicy, c.Spec.SuccessfulJobsHistoryLimit = batchv1.ReplaceConcurrent, new(int32(0))
		})
		var background atomic.Int32
		c.jobs.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" && bytes.Contains(managertest.Body(t, q), []byte("Background")) {
				background.Add(1)
			}
			return nil
		})
		c.start()
		pass(2*time.Hour + time.Second)
		c.want("after the first was replaced", "02:00")
		c.finish("report-15778200", batchv1.JobComplete)
		c.want("with a history of none")
		if n := background.Load(); n != 2 {
			t.Errorf("%d of 2 Jobs were deleted in the background", n)
		}
		pass(time.Minute)
		notes := c.notes("SuccessfulDelete")
		slices.Sort(notes)
		if !slices.Equal(notes, []string{"Deleted job report-15778140", "Deleted job report-15778200"}) {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestADeleteThatIsRefusedIsSaidAndRetriedEverLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "0 * * * *", func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ReplaceConcurrent })
		c.jobs.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" {
				return fakeapi.Forbidden("jobs")
			}
			return nil
		})
		c.start()
		pass(2*time.Hour + 30*time.Minute)
		c.want("beside the Job that stays", "01:00")
		if notes := slices.Compact(c.notes("FailedDelete")); len(notes) != 1 || !strings.HasPrefix(notes[0], "Deleted job: ") {
			t.Errorf("the Events say %q", notes)
		}
		n := 0
		for _, q := range c.jobs.Requests() {
			if q.Verb == "delete" {
				n++
			}
		}
		if n > 30 {
			t.Errorf("in half an hour the Job was deleted %d times", n)
		}
	})
}

// Another manager may have started a Job a moment ago.
func TestAnActiveJobThatTheCacheDoesNotShowIsReadFromTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		cronJob := c.create("report", "0 * * * *", func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent })
		c.start()
		c.jobs.HoldWatches(true)
		theirs, err := newJob(cronJob, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if theirs, err = client.For[*batchv1.Job](c.client).Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		started := cronJob.DeepCopy()
		p := plan{}
		p.started(theirs, time.Now())
		started.Status = p.status
		if _, err := client.For[*batchv1.CronJob](c.client).UpdateStatus(t.Context(), started); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour + time.Second)
		if status := c.status("report"); len(status.Active) != 1 || status.Active[0].UID != theirs.UID {
			t.Errorf("the status is %+v", status)
		}
		if n := c.creates(); n != 1 { // theirs
			t.Errorf("%d Jobs were created beside it", n-1)
		}
		c.jobs.Remove(object.KeyOf(theirs))
		pass(time.Hour)
		if notes := c.notes("MissingJob"); len(notes) != 1 || notes[0] != "Active job went missing: "+theirs.Name {
			t.Errorf("the Events say %q", notes)
		}
		c.jobs.HoldWatches(false)
		synctest.Wait()
	})
}

// With Replace a Job that cannot be read is not deleted, so the next one does not start.
func TestAnActiveJobThatCannotBeReadHasAnEventIfItIsToBeReplaced(t *testing.T) {
	for policy, said := range map[batchv1.ConcurrencyPolicy]int{batchv1.ReplaceConcurrent: 1, batchv1.ForbidConcurrent: 0, batchv1.AllowConcurrent: 0} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			cronJob := c.create("report", "0 * * * *", func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = policy })
			c.start()
			c.jobs.HoldWatches(true)
			theirs, err := newJob(cronJob, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if theirs, err = client.For[*batchv1.Job](c.client).Create(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			var away atomic.Bool
			away.Store(true)
			c.jobs.Before(func(q *fakeapi.Request) *metav1.Status {
				if q.Verb == "get" && away.Load() {
					return fakeapi.Forbidden("jobs")
				}
				return nil
			})
			running(cronJob, theirs)
			if _, err := client.For[*batchv1.CronJob](c.client).UpdateStatus(t.Context(), cronJob); err != nil {
				t.Fatal(err)
			}
			pass(50 * time.Minute)
			if notes := c.notes("FailedGet"); len(notes) > 0 {
				t.Errorf("with %s the Events before the slot say %q", policy, notes)
			}
			pass(30 * time.Minute) // for a retry
			notes := slices.Compact(c.notes("FailedGet"))
			if len(notes) != said || said > 0 && !strings.HasPrefix(notes[0], "Get job: jobs is forbidden") {
				t.Errorf("with %s the Events say %q", policy, notes)
			}
			c.want("with "+string(policy)+", while the Job cannot be read,", "00:00")
			away.Store(false)
			c.jobs.HoldWatches(false)
			pass(time.Hour)
			if got, want := c.slots(), map[batchv1.ConcurrencyPolicy][]string{
				batchv1.ReplaceConcurrent: {"02:00"}, batchv1.ForbidConcurrent: {"00:00"}, batchv1.AllowConcurrent: {"00:00", "01:00", "02:00"},
			}[policy]; !slices.Equal(got, want) {
				t.Errorf("with %s, when it can be read, there are the Jobs of %q, want %q", policy, got, want)
			}
		})
	}
}

func TestAnEditToAScheduleThatCannotBeParsedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "0 * * * *")
		c.start()
		edit := func(schedule string) {
			t.Helper()
			cronJob, err := client.For[*batchv1.CronJob](c.client).Get(t.Context(), object.Key{Namespace: "team-a", Name: "report"})
			if err != nil {
				t.Fatal(err)
			}
			cronJob.Spec.Schedule = schedule
			if _, err := client.For[*batchv1.CronJob](c.client).Update(t.Context(), cronJob); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
		}
		edit("every hour")
		edit("TZ=0")
		edit("0 0 31 2 *") // can be parsed, and names no day
		edit("*/30 * * * *")
		edit("0 0 0")
		for reason, want := range map[string][]string{
			"UnParseableCronJobSchedule": {
				"unparseable schedule for cronjob: 0 0 0", "unparseable schedule for cronjob: TZ=0", "unparseable schedule for cronjob: every hour",
			},
			reasonUnparseable: nil,
			reasonUnsupported: nil,
			reasonInvalid:     {"invalid schedule: 0 0 31 2 * : the schedule names no day that exists"},
		} {
			notes := c.notes(reason)
			if slices.Sort(notes); !slices.Equal(notes, want) {
				t.Errorf("the Events %s say %q, want %q", reason, notes, want)
			}
		}
	})
}

// A run that an edit of the schedule has not started has the Event that it has at the start of a manager.
func TestAScheduleThatCannotBeParsedHasOneReasonAtItsEditAndAnotherOneLater(t *testing.T) {
	bad := hourly(func(c *batchv1.CronJob) { c.Spec.Schedule = "every hour" })
	first := decide(view{cronJob: hourly(), now: at(0, 10)})
	edited := decide(view{cronJob: bad, now: at(0, 20), memory: first.memory})
	if got := edited.eventReasons(); got != reasonUnparseableEdit {
		t.Errorf("after the edit the Events are %s", got)
	}
	if len(edited.reasons) != 1 || edited.reasons[0].Code != codeBadSchedule {
		t.Errorf("after the edit the reasons are %v", edited.reasons)
	}
	later := decide(view{cronJob: bad, now: at(0, 30), memory: edited.memory})
	if got := later.eventReasons(); got != reasonUnparseable {
		t.Errorf("in the next run the Events are %s", got)
	}
	worse := bad.DeepCopy()
	worse.Spec.Schedule = "every minute"
	atStart := decide(view{cronJob: bad, now: at(0, 30)})
	if again := decide(view{cronJob: worse, now: at(0, 40), memory: atStart.memory}); atStart.eventReasons() != reasonUnparseable || again.eventReasons() != reasonUnparseableEdit {
		t.Errorf("from one bad schedule to another one the Events are %s, then %s", atStart.eventReasons(), again.eventReasons())
	}
	mended := decide(view{cronJob: hourly(), now: at(1, 30), memory: later.memory})
	if !mended.slot.Equal(at(1, 0)) {
		t.Errorf("with the first schedule again, the slot is %s", mended.slot)
	}
}

func TestAnEditOfTheScheduleStartsAJobAtItsNewTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "0 0 1 1 *") // once a year
		c.start()
		pass(10 * time.Minute)
		cronJob, err := client.For[*batchv1.CronJob](c.client).Get(t.Context(), object.Key{Namespace: "team-a", Name: "report"})
		if err != nil {
			t.Fatal(err)
		}
		cronJob.Spec.Schedule = "20 * * * *"
		if _, err := client.For[*batchv1.CronJob](c.client).Update(t.Context(), cronJob); err != nil {
			t.Fatal(err)
		}
		pass(10*time.Minute + pad)
		c.want("at the new time", "00:20")
	})
}

func TestALateStartLeavesTheTimeOfTheLastOne(t *testing.T) {
	c := hourly(func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent })
	first := job(c, at(1, 0), "")
	running(c, first)
	p := decide(view{cronJob: c, jobs: []*batchv1.Job{first}, now: at(2, 0).Add(pad)})
	if last := p.status.LastScheduleTime; last == nil || !last.Time.Equal(at(1, 0)) {
		t.Errorf("the last schedule time is %v", last)
	}
}
