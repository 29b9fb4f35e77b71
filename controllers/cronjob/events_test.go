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
