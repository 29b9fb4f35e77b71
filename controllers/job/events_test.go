// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Programs and people search for these texts.
// Source: k8s.io/kubernetes/pkg/controller/job, job_controller.go.
func TestSuspensionHasUpstreamsConditionsAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", func(j *batchv1.Job) { j.Spec.Suspend = new(true) }))
		suspended := func(status corev1.ConditionStatus, reason, message string) {
			t.Helper()
			is := find(c.job(key).Status.Conditions, batchv1.JobSuspended)
			if is == nil || is.Status != status || is.Reason != reason || is.Message != message {
				t.Errorf("the condition is %+v", is)
			}
		}
		pass(time.Second)
		suspended(corev1.ConditionTrue, "JobSuspended", "Job suspended")
		c.edit(key, func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
		pass(time.Minute)
		suspended(corev1.ConditionFalse, "JobResumed", "Job resumed")
		pod := c.active()[0].Name
		c.edit(key, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		pass(time.Minute)
		for reason, want := range map[string][]string{
			"Suspended": {"Job suspended"}, "Resumed": {"Job resumed"},
			"SuccessfulCreate": {"Created pod: " + pod}, "SuccessfulDelete": {"Deleted pod: " + pod},
		} {
			if got := c.Notes(reason); !slices.Equal(got, want) {
				t.Errorf("the Events %s say %q, want %q", reason, got, want)
			}
		}
	})
}

// More Pods run than have to succeed, and all of them do.
func TestMoreSuccessesThanCompletionsAreSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		key := c.create(newJob("report", wants(1, 1)))
		for _, name := range []string{"a", "b", "c"} {
			c.adopted(name, "", func(pod *corev1.Pod) { endWith(pod, 0, time.Now()) })
		}
		c.start()
		pass(time.Minute)
		c.wantCounts("at the end", key, 0, 3, 0)
		if notes := c.Notes("TooManySucceededPods"); !slices.Equal(notes, []string{"Too many succeeded pods running after completion count reached"}) {
			t.Errorf("the Events say %q", notes)
		}
		if notes := c.Notes("Completed"); !slices.Equal(notes, []string{"Job completed"}) {
			t.Errorf("the Events say %q", notes)
		}
	})
}
