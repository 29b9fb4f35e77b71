// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
)

// jobs are indexed Jobs, one after the other, each of which runs to its end.
type jobs struct {
	*stage
	wanted int
}

// The controller looks at Pods that have ended once a second, so this takes some seconds.
const (
	completions = 6
	parallelism = 3
)

func newJobs(s *stage) work {
	j := &jobs{stage: s}
	j.change()
	return j
}

func (j *jobs) name() string { return fmt.Sprint("sum-", j.wanted) }

func (j *jobs) change() {
	j.t.Helper()
	j.wanted++
	_, err := client.For[*batchv1.Job](j.Client).Create(j.t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.namespace, Name: j.name()},
		Spec: batchv1.JobSpec{
			CompletionMode: new(batchv1.IndexedCompletion), Completions: new(int32(completions)), Parallelism: new(int32(parallelism)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"sim.setpoint.io/exit-after": "100ms+300ms"}},
				Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
			},
		},
	})
	if err != nil {
		j.t.Fatal(err)
	}
}

// begun reports whether Pods of the newest Job have succeeded.
func (j *jobs) begun() bool {
	for _, pod := range j.pods.now() {
		if pod.Labels[batchv1.JobNameLabel] == j.name() && pod.Status.Phase == corev1.PodSucceeded {
			return true
		}
	}
	return false
}

// missing holds that each index of each Job has succeeded in one Pod, and is counted once.
func (j *jobs) missing() string {
	all, _, err := client.For[*batchv1.Job](j.Client).List(j.t.Context(), client.Selection{Namespace: j.namespace})
	if err != nil {
		return err.Error()
	}
	for _, job := range all {
		s := job.Status
		if s.CompletionTime == nil || s.Active != 0 || len(s.UncountedTerminatedPods.Succeeded) > 0 {
			return fmt.Sprintf("the status of Job %s is %+v", job.Name, s)
		}
		if s.Succeeded != completions || s.Failed != 0 || s.CompletedIndexes != fmt.Sprintf("0-%d", completions-1) {
			j.t.Fatalf("Job %s has counted %d succeeded Pods and %d failed ones, and the indexes %s", job.Name, s.Succeeded, s.Failed, s.CompletedIndexes)
		}
	}
	indexes := map[string]string{}
	pods := j.pods.now()
	for _, pod := range pods {
		index := pod.Labels[batchv1.JobNameLabel] + " " + pod.Annotations[batchv1.JobCompletionIndexAnnotation]
		if other := indexes[index]; other != "" {
			j.t.Fatalf("the Pods %s and %s are both of index %s", other, pod.Name, index)
		}
		indexes[index] = pod.Name
		if len(pod.Finalizers) > 0 {
			return fmt.Sprintf("Pod %s has the finalizers %v", pod.Name, pod.Finalizers)
		}
	}
	if len(all) != j.wanted || len(pods) != j.wanted*completions {
		return fmt.Sprintf("%d Jobs of %d, with %d Pods", len(all), j.wanted, len(pods))
	}
	return ""
}

// inBounds holds that no Job has more Pods at work than it may.
func (j *jobs) inBounds(pods map[types.UID]*corev1.Pod) error {
	atWork := map[string]int{}
	for _, pod := range pods {
		if alive(pod) {
			atWork[pod.Labels[batchv1.JobNameLabel]]++
		}
	}
	for job, n := range atWork {
		if n > parallelism {
			return fmt.Errorf("%d Pods of Job %s are at work, and %d may be", n, job, parallelism)
		}
	}
	return nil
}
