// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAJobRunsToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(3, 2)))
		status := c.wantCounts("at first", key, 2, 0, 0)
		if status.StartTime == nil {
			t.Error("the Job has no start time")
		}
		for _, pod := range c.all() {
			if !tracked(pod) || !strings.HasPrefix(pod.Name, "report-") || metav1.GetControllerOf(pod) == nil {
				t.Errorf("the Job's Pod is %+v", pod.ObjectMeta)
			}
		}
		c.endAll(0)
		c.wantCounts("after two Pods", key, 1, 2, 0)
		c.endAll(0)
		pass(time.Second)
		status = c.wantCounts("after three Pods", key, 0, 3, 0)
		job := c.job(key)
		if holds(job, batchv1.JobComplete) == nil || holds(job, batchv1.JobSuccessCriteriaMet) == nil || status.CompletionTime == nil ||
			holds(job, batchv1.JobComplete).Reason != batchv1.JobReasonCompletionsReached {
			t.Errorf("the status is %+v", status)
		}
		for _, pod := range c.all() {
			if tracked(pod) {
				t.Errorf("Pod %s still has the finalizer", pod.Name)
			}
		}
		if notes := c.notes(reasonCompleted); len(notes) != 1 || notes[0] != "Job completed" {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestFailedPodsAreReplacedLaterAndLaterUntilTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(2)) }))
		for _, wait := range []time.Duration{10 * time.Second, 20 * time.Second} {
			for _, pod := range c.active() {
				c.end(pod, 1)
			}
			pass(wait - time.Second)
			if n := len(c.active()); n != 0 {
				t.Fatalf("%s after the failure %d Pods run", wait-time.Second, n)
			}
			pass(2 * time.Second)
			if n := len(c.active()); n != 1 {
				t.Fatalf("%s after the failure %d Pods run", wait+time.Second, n)
			}
		}
		c.endAll(1)
		pass(time.Second)
		c.wantCounts("at the end", key, 0, 0, 3)
		job := c.job(key)
		if f := holds(job, batchv1.JobFailed); f == nil || f.Reason != batchv1.JobReasonBackoffLimitExceeded || holds(job, batchv1.JobFailureTarget) == nil {
			t.Errorf("the conditions are %+v", job.Status.Conditions)
		}
		if notes := c.notes(batchv1.JobReasonBackoffLimitExceeded); len(notes) != 1 || notes[0] != "Job has reached the specified backoff limit" {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestTheBackoffSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		c.create(newJob("report"))
		c.endAll(1)
		pass(10 * time.Second)
		c.endAll(1) // the next Pod starts after 20 s
		p.Stop()
		c.start()
		pass(15 * time.Second)
		if n := len(c.active()); n != 0 {
			t.Fatalf("before the time %d Pods run", n)
		}
		pass(5 * time.Second)
		if n := len(c.active()); n != 1 {
			t.Fatalf("after the time %d Pods run", n)
		}
	})
}

func TestAnIndexedJobRunsEachIndexOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(5, 3), isIndexed))
		seen := map[string]int{}
		for range 3 {
			for _, pod := range c.active() {
				seen[pod.Labels[batchv1.JobCompletionIndexAnnotation]]++
				if pod.Spec.Hostname != "report-"+pod.Labels[batchv1.JobCompletionIndexAnnotation] || pod.Spec.Containers[0].Env[0].Name != indexVariable {
					t.Errorf("the Pod's spec is %+v", pod.Spec)
				}
			}
			c.endAll(0)
		}
		if status := c.wantCounts("at the end", key, 0, 5, 0); status.CompletedIndexes != "0-4" || holds(c.job(key), batchv1.JobComplete) == nil {
			t.Errorf("the status is %+v", status)
		}
		for index, n := range seen {
			if n != 1 {
				t.Errorf("index %s has run %d times", index, n)
			}
		}
	})
}

func TestASuspendedJobHasNoPodsAndStartsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(4, 2)))
		c.edit(key, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		pass(2 * time.Second)
		status := c.wantCounts("while suspended", key, 0, 0, 0)
		if holds(c.job(key), batchv1.JobSuspended) == nil || status.StartTime != nil || len(c.all()) != 0 {
			t.Errorf("%d Pods, the status is %+v", len(c.all()), status)
		}
		pass(time.Hour)
		c.edit(key, func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
		pass(2 * time.Second)
		status = c.wantCounts("after the resumption", key, 2, 0, 0)
		if holds(c.job(key), batchv1.JobSuspended) != nil || status.StartTime == nil || time.Since(status.StartTime.Time) > time.Minute {
			t.Errorf("the status is %+v", status)
		}
		if len(c.notes(reasonSuspended)) != 1 || len(c.notes(reasonResumed)) != 1 {
			t.Errorf("the Events are %q and %q", c.notes(reasonSuspended), c.notes(reasonResumed))
		}
	})
}

func TestPodsOfAJobThatWentAreFreed(t *testing.T) {
	for name, running := range map[string]bool{"while the controller runs": true, "while no controller runs": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				p := c.start()
				key := c.create(newJob("report", wants(4, 4)))
				if !running {
					p.Stop()
				}
				c.jobs.Remove(key)
				for _, pod := range c.all() { // the garbage collector deletes them
					if err := client.For[*corev1.Pod](c.client).Delete(t.Context(), object.KeyOf(pod)); err != nil {
						t.Fatal(err)
					}
				}
				if !running {
					c.start()
				}
				pass(time.Second)
				if n := len(c.all()); n != 0 {
					t.Errorf("%d Pods are left", n)
				}
			})
		})
	}
}

func TestAnotherManagersJobIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", func(j *batchv1.Job) { j.Spec.ManagedBy = new("example.com/queue") }))
		pass(time.Minute)
		if len(c.all()) != 0 || c.job(key).Status.StartTime != nil {
			t.Errorf("%d Pods, the status is %+v", len(c.all()), c.job(key).Status)
		}
	})
}

func TestATerminatingNamespaceIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "create" {
				return nil
			}
			s := fakeapi.Forbidden("pods")
			s.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
			return s
		})
		c.start()
		c.create(newJob("report"))
		pass(time.Minute)
		if notes := c.notes("FailedCreate"); len(notes) > 0 {
			t.Errorf("the Events say %q", notes)
		}
	})
}
