// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// cluster is a server with CronJobs and Jobs, inside of a bubble of synctest. No controller
// runs its Jobs.
type cluster struct {
	t              *testing.T
	api            *fakeapi.Server
	cronJobs, jobs *fakeapi.Resource
	events         *fakeapi.Resource
	client         *client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := fakeapi.New()
	c := &cluster{
		t: t, api: api,
		cronJobs: api.Serve(kind, fakeapi.WithStatus()),
		jobs:     api.Serve(object.Resource{Group: "batch", Version: "v1", Plural: "jobs", Kind: "Job", Namespaced: true}, fakeapi.WithStatus()),
		events:   api.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}),
	}
	var err error
	if c.client, err = client.New(api.Config()); err != nil {
		t.Fatal(err)
	}
	return c
}

// start runs the controller. stop ends it.
func (c *cluster) start() (stop func()) {
	c.t.Helper()
	p := managertest.Run(c.t, c.api.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return p.Stop
}

// create creates a CronJob with a schedule, as a user would.
func (c *cluster) create(name, schedule string, change ...func(*batchv1.CronJob)) *batchv1.CronJob {
	c.t.Helper()
	cronJob := hourly(change...)
	cronJob.ObjectMeta = metav1.ObjectMeta{Namespace: "team-a", Name: name}
	cronJob.Spec.Schedule = schedule
	made, err := client.For[*batchv1.CronJob](c.client).Create(c.t.Context(), cronJob)
	if err != nil {
		c.t.Fatal(err)
	}
	return made
}

// finish ends a Job as the controller of Jobs would.
func (c *cluster) finish(name string, how batchv1.JobConditionType) {
	c.t.Helper()
	server := client.For[*batchv1.Job](c.client)
	job, err := server.Get(c.t.Context(), object.Key{Namespace: "team-a", Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	now := metav1.Now()
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, LastTransitionTime: now}}
	job.Status.CompletionTime = &now
	if _, err := server.UpdateStatus(c.t.Context(), job); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

// want compares the Jobs that are there with the times of their slots.
func (c *cluster) want(when string, slots ...string) {
	c.t.Helper()
	if got := c.slots(); !slices.Equal(got, slots) {
		c.t.Fatalf("%s there are the Jobs of %q, want %q", when, got, slots)
	}
}

func (c *cluster) slots() (all []string) {
	c.t.Helper()
	jobs, _, err := client.For[*batchv1.Job](c.client).List(c.t.Context(), client.Selection{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, job := range jobs {
		slot, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
		if err != nil {
			c.t.Error(err)
		}
		all = append(all, slot.Format("15:04"))
	}
	slices.Sort(all)
	return all
}

func (c *cluster) status(name string) batchv1.CronJobStatus {
	c.t.Helper()
	cronJob, err := client.For[*batchv1.CronJob](c.client).Get(c.t.Context(), object.Key{Namespace: "team-a", Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return cronJob.Status
}

// creates returns how many requests to create a Job the server got.
func (c *cluster) creates() (n int) {
	for _, q := range c.jobs.Requests() {
		if q.Verb == "create" {
			n++
		}
	}
	return n
}

// notes returns what the Events of a reason say.
func (c *cluster) notes(reason string) (all []string) {
	c.t.Helper()
	events, _, err := client.For[*eventsv1.Event](c.client).List(c.t.Context(), client.Selection{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range events {
		if e.Reason == reason {
			all = append(all, e.Note)
		}
	}
	return all
}

// pass lets time pass, and the controllers do what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// The clock of a bubble begins at midnight, UTC, on 1 January 2000.

func TestJobsStartAtTheirTimesAndTheirHistoryIsKeptShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "*/30 * * * *")
		c.start()
		pass(30 * time.Minute)
		c.want("at the slot")
		pass(pad)
		c.want("just after the slot", "00:30")
		status := c.status("report")
		if len(status.Active) != 1 || status.Active[0].Name != "report-15778110" || status.LastScheduleTime.UTC().Format("15:04") != "00:30" {
			t.Fatalf("the status is %v", status)
		}
		c.finish("report-15778110", batchv1.JobComplete)
		if status := c.status("report"); len(status.Active) != 0 || status.LastSuccessfulTime == nil {
			t.Fatalf("after the Job the status is %v", status)
		}
		pass(2 * time.Hour)
		for _, ref := range c.status("report").Active {
			c.finish(ref.Name, batchv1.JobComplete)
		}
		pass(time.Second)
		c.want("with a limit of three", "01:30", "02:00", "02:30")
		if notes := c.notes(reasonCreated); !slices.Contains(notes, "Created job report-15778110") {
			t.Errorf("the Events of created Jobs are %q", notes)
		}
	})
}

func TestAStartWhoseStatusWasNotWrittenIsNotRepeated(t *testing.T) {
	for _, policy := range []batchv1.ConcurrencyPolicy{batchv1.AllowConcurrent, batchv1.ForbidConcurrent} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.create("report", "0 * * * *", func(c *batchv1.CronJob) { c.Spec.ConcurrencyPolicy = policy })
			refused := true
			c.cronJobs.Before(func(q *fakeapi.Request) *metav1.Status {
				if q.Verb == "update" && refused {
					return fakeapi.Forbidden("cronjobs")
				}
				return nil
			})
			stop := c.start()
			pass(time.Hour + time.Second)
			c.want("without a status", "01:00")
			stop() // the process is killed between its two writes
			refused = false
			pass(10 * time.Minute)
			c.start()
			pass(time.Second)
			c.want("after the restart", "01:00")
			if status := c.status("report"); len(status.Active) != 1 || status.LastScheduleTime == nil {
				t.Fatalf("the status is %v", status)
			}
			if notes := c.notes(reasonUnexpected); len(notes) > 0 {
				t.Errorf("the controller does not know its own Job: %q", notes)
			}
			pass(time.Hour)
			if policy == batchv1.ForbidConcurrent {
				c.want("beside the Job that runs", "01:00")
			} else {
				c.want("at the next slot", "01:00", "02:00")
			}
		})
	}
}

func TestACreateWhoseAnswerWasLostIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "0 * * * *")
		c.start()
		c.jobs.LoseNext(1, "create")
		pass(time.Hour + time.Minute)
		c.want("after the create", "01:00")
		if status := c.status("report"); len(status.Active) != 1 {
			t.Fatalf("the status is %v", status)
		}
	})
}

func TestTheNameOfAJobThatSomebodyElseHasIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "0 * * * *")
		theirs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "report-15778140", Annotations: map[string]string{
			batchv1.CronJobScheduledTimestampAnnotation: "2000-01-01T00:00:00Z",
		}}}
		if err := c.jobs.Add(theirs); err != nil {
			t.Fatal(err)
		}
		c.start()
		pass(time.Hour + time.Minute)
		if notes := c.notes(reasonNotCreated); len(notes) != 1 || !strings.Contains(notes[0], "report-15778140 exists, and this CronJob does not control it") {
			t.Errorf("the Events say %q", notes)
		}
		if n := c.creates(); n > 3 {
			t.Errorf("the Job was created %d times", n)
		}
		pass(time.Hour)
		c.want("at the next slot", "00:00", "02:00")
	})
}

func TestTimesWithoutAControllerAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "0 * * * *")
		stop := c.start()
		pass(time.Hour + time.Minute)
		stop()
		pass(5 * time.Hour)
		c.start()
		pass(time.Minute)
		c.want("after the restart", "01:00", "06:00")
		if notes := c.notes(reasonMissed); len(notes) != 1 || !strings.HasPrefix(notes[0], "Missed 4 scheduled times to start a job, from Sat, 01 Jan 2000 02:00:00 +0000 to Sat, 01 Jan 2000 05:00:00 +0000: no controller ran") {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestANamespaceThatTerminatesIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.create("report", "0 * * * *")
		c.jobs.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "create" {
				return nil
			}
			s := fakeapi.Forbidden("jobs")
			s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
			return s
		})
		c.start()
		pass(time.Hour + 30*time.Minute)
		if n := c.creates(); n != 1 {
			t.Errorf("the Job was created %d times, want 1", n)
		}
		if notes := c.notes(reasonNotCreated); len(notes) > 0 {
			t.Errorf("the Events say %q", notes)
		}
	})
}
