// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/manager"
)

// noon is when the Jobs of these tests finish.
var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// finishedJob returns a Job that ended at noon by way of a condition.
func finishedJob(condition batchv1.JobConditionType, ttl *int32) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "import"},
		Spec:       batchv1.JobSpec{TTLSecondsAfterFinished: ttl},
		Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))},
			{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
		}},
	}
}

func TestAJobIsDeletedItsTTLAfterItCompletedOrFailedAndNoOtherIs(t *testing.T) {
	deleting := finishedJob(batchv1.JobComplete, new(int32(10)))
	deleting.DeletionTimestamp = new(metav1.NewTime(noon))
	undone := finishedJob(batchv1.JobFailed, new(int32(10)))
	undone.Status.Conditions[1].Status = corev1.ConditionFalse
	for name, c := range map[string]struct {
		job  *batchv1.Job
		want time.Time // zero: it stays
	}{
		"completed":                         {finishedJob(batchv1.JobComplete, new(int32(10))), noon.Add(10 * time.Second)},
		"failed":                            {finishedJob(batchv1.JobFailed, new(int32(10))), noon.Add(10 * time.Second)},
		"at once":                           {finishedJob(batchv1.JobComplete, new(int32(0))), noon},
		"without a TTL":                     {finishedJob(batchv1.JobComplete, nil), time.Time{}},
		"being deleted":                     {deleting, time.Time{}},
		"a condition that is not true":      {undone, time.Time{}},
		"about to fail, Pods are ending":    {finishedJob(batchv1.JobFailureTarget, new(int32(10))), time.Time{}},
		"about to succeed, Pods are ending": {finishedJob(batchv1.JobSuccessCriteriaMet, new(int32(10))), time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, at, wanted, err := expiry(c.job)
			if err != nil || wanted == c.want.IsZero() || wanted && !at.Equal(c.want) {
				t.Errorf("expiry = %s, %t, %v; want %s", at, wanted, err, c.want)
			}
		})
	}
}

func TestTheLongestTTLDoesNotOverflow(t *testing.T) {
	_, at, _, err := expiry(finishedJob(batchv1.JobComplete, new(int32(1<<31-1))))
	if err != nil || at.Year() != 2094 {
		t.Errorf("expiry = %s, %v; want it in 2094", at, err)
	}
}

func TestAFinishedJobThatDoesNotSayWhenIsAnError(t *testing.T) {
	job := finishedJob(batchv1.JobComplete, new(int32(10)))
	job.Status.Conditions[1].LastTransitionTime = metav1.Time{}
	if _, _, wanted, err := expiry(job); wanted || err == nil || !strings.Contains(err.Error(), "Complete") {
		t.Errorf("expiry = %t, %v; want an error that names the condition", wanted, err)
	}
}

func TestNegativeWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New with -1 workers = %v, want an error that says so", err)
	}
}
