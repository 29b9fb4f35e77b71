// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cronjob

import (
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// due creates a CronJob whose last start was long ago, so that a Job starts at once. The next one
// starts on the first of January.
func due(t *testing.T, namespace, name string, policy batchv1.ConcurrencyPolicy) object.Key {
	t.Helper()
	writer := client.For[*batchv1.CronJob](shared.Get(t).Client)
	cronJob, err := writer.Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 0 1 1 *", TimeZone: new("Asia/Tokyo"), ConcurrencyPolicy: policy,
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
				}}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	cronJob.Status.LastScheduleTime = &metav1.Time{Time: time.Now().AddDate(-1, 0, 0)}
	if _, err := writer.UpdateStatus(t.Context(), cronJob); err != nil {
		t.Fatal(err)
	}
	return object.KeyOf(cronJob)
}

func TestJobsOfACronJobStartEndAndGoWithTheRightsThatAreDeclared(t *testing.T) {
	cluster := shared.Get(t)
	p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	key := due(t, cluster.Namespace(t), "report", batchv1.ForbidConcurrent)
	var started corev1.ObjectReference
	controlplanetest.Await(t, p, key, "a Job has started", func(c *batchv1.CronJob) bool {
		if len(c.Status.Active) == 1 {
			started = c.Status.Active[0]
		}
		return len(c.Status.Active) == 1
	})
	jobs := client.For[*batchv1.Job](cluster.Client)
	job, err := jobs.Get(t.Context(), object.Key{Namespace: key.Namespace, Name: started.Name})
	if err != nil {
		t.Fatal(err)
	}
	if slot := job.Annotations[batchv1.CronJobScheduledTimestampAnnotation]; !strings.HasSuffix(slot, "-01-01T00:00:00+09:00") ||
		job.UID != started.UID || job.Labels["app"] != "report" || metav1.GetControllerOf(job) == nil {
		t.Errorf("the Job is %v, and the status names %v", job.ObjectMeta, started)
	}

	// It ends, as the controller of Jobs would say it.
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	job.Status = batchv1.JobStatus{
		StartTime: &now, CompletionTime: &now, Succeeded: 1, Ready: new(int32(0)), Terminating: new(int32(0)),
		UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
	}
	if _, err := jobs.UpdateStatus(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, p, key, "the Job is over", func(c *batchv1.CronJob) bool {
		return len(c.Status.Active) == 0 && c.Status.LastSuccessfulTime != nil && c.Status.LastSuccessfulTime.Time.Equal(now.Time)
	})

	// A history without room deletes it.
	patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"successfulJobsHistoryLimit": 0}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.For[*batchv1.CronJob](cluster.Client).Patch(t.Context(), key, patch); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the Job is deleted", func() bool {
		j, err := jobs.Get(t.Context(), object.KeyOf(job))
		return apierrors.IsNotFound(err) || err == nil && j.DeletionTimestamp != nil
	})
}
