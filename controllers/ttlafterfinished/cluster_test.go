// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ttlafterfinished

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// finish makes a Job that has completed just now. No controller runs it.
func finish(t *testing.T, namespace, name string, ttl *int32) object.Key {
	t.Helper()
	writer := client.For[*batchv1.Job](shared.Get(t).Client)
	job, err := writer.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			TTLSecondsAfterFinished: ttl,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "import", Image: "busybox"}},
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(time.Now())
	job.Status = batchv1.JobStatus{
		StartTime: &now, CompletionTime: &now, Succeeded: 1, Ready: new(int32(0)), Terminating: new(int32(0)),
		UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{},
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
	}
	if _, err := writer.UpdateStatus(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	return object.KeyOf(job)
}

func TestAFinishedJobIsDeletedWithTheRightsThatAreDeclared(t *testing.T) {
	cluster := shared.Get(t)
	mgr, err := manager.New(cluster.Restricted(t, Rights()), manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	ttl, err := New(mgr, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(ttl); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	namespace := cluster.Namespace(t)
	kept := finish(t, namespace, "kept", nil)
	soon := finish(t, namespace, "soon", new(int32(0)))
	// It stays until a garbage collector has seen to its Pods, which is what deleting
	// in the foreground means.
	controlplanetest.Await(t, mgr, soon, "the Job is being deleted in the foreground", func(job *batchv1.Job) bool {
		return job.DeletionTimestamp != nil && slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents)
	})
	controlplanetest.Await(t, mgr, kept, "the Job without a TTL stays", func(job *batchv1.Job) bool {
		return job.DeletionTimestamp == nil
	})
}
