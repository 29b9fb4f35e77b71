// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// jobsCase is about one large indexed Job, and then about many Jobs of one Pod. The Pods
// succeed as soon as they are created.
var jobsCase = scaleCase{
	what:        "completions of one indexed Job with a twentieth of them at a time, and then a tenth as many Jobs of one",
	size:        10_000,
	controllers: []string{"serviceaccount-controller", "job-controller"},
	measure:     measureJobs,
	plain:       measurePlainPods,
	lines: func(size int) []caseLine {
		return []caseLine{
			{name: "jobs-indexed-wall", unit: "s", reading: "indexed", aim: aim{most: 1 / 1.5}},
			{name: "jobs-indexed-wall-vs-plain-clients", unit: "s", reading: "indexed", plain: true},
			{name: "jobs-indexed-cpu", unit: "s", reading: "indexed-cpu", aim: aim{most: 0.5}},
			{name: "jobs-indexed-requests-per-pod", reading: "indexed-requests"},
			{name: fmt.Sprintf("jobs-%d-of-one-wall", smallJobs(size)), unit: "s", reading: "small", aim: aim{most: 1 / 1.5}},
			{name: fmt.Sprintf("jobs-%d-of-one-cpu", smallJobs(size)), unit: "s", reading: "small-cpu", aim: aim{most: 0.5}},
			{name: fmt.Sprintf("jobs-%d-of-one-requests-per-job", smallJobs(size)), reading: "small-requests"},
			{name: "jobs-memory-after", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
		}
	},
}

// smallJobs is how many Jobs of one Pod there are.
func smallJobs(size int) int { return max(1, size/10) }

func measureJobs(ctx context.Context, s *scene) (found readings, err error) {
	k, err := s.startKubelet(ctx, succeededPod)
	if err != nil {
		return nil, err
	}
	defer k.end()
	indexed, err := s.work(ctx, "indexed", func() error {
		if err := s.createJob(ctx, "indexed", s.size, max(1, s.size/20)); err != nil {
			return err
		}
		return s.awaitJobs(ctx, k, 1)
	})
	if err != nil {
		return nil, err
	}
	small, err := s.work(ctx, "small", func() error {
		err := s.each(ctx, smallJobs(s.size), func(ctx context.Context, i int) error {
			return s.createJob(ctx, fmt.Sprint("small-", i), 1, 1)
		})
		if err != nil {
			return err
		}
		return s.awaitJobs(ctx, k, 1+smallJobs(s.size))
	})
	if err != nil {
		return nil, err
	}
	memory, err := s.manager.memory()
	if err != nil {
		return nil, err
	}
	return readings{
		"indexed": indexed.wall, "indexed-cpu": indexed.cpu, "indexed-requests": indexed.requests / float64(s.size),
		"small": small.wall, "small-cpu": small.cpu, "small-requests": small.requests / float64(smallJobs(s.size)),
		"memory": memory,
	}, k.stop()
}

func (s *scene) createJob(ctx context.Context, name string, completions, parallelism int) error {
	pods := template(nil)
	pods.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := s.plain.BatchV1().Jobs("default").Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			CompletionMode: new(batchv1.IndexedCompletion),
			Completions:    new(int32(completions)), Parallelism: new(int32(parallelism)), Template: pods,
		},
	}, metav1.CreateOptions{})
	return err
}

// awaitJobs waits until so many Jobs are complete.
func (s *scene) awaitJobs(ctx context.Context, k *kubelet, want int) error {
	return poll(ctx, fmt.Sprintf("%d Jobs to complete", want), func() (bool, error) {
		list, err := s.plain.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		complete := 0
		for i := range list.Items {
			for _, c := range list.Items[i].Status.Conditions {
				if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
					complete++
				}
			}
		}
		return complete == want, k.failed()
	})
}

// measurePlainPods measures how fast the server takes the writes that each Pod of a Job needs:
// it is created with a finalizer, succeeds, and loses the finalizer.
func measurePlainPods(ctx context.Context, s *scene) (readings, error) {
	pods := s.plain.CoreV1().Pods("default")
	name := func(i int) string { return fmt.Sprint("plain-", i) }
	began := time.Now()
	err := s.createPods(ctx, s.size, func(i int) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name(i), Finalizers: []string{batchv1.JobTrackingFinalizer}}, Spec: template(nil).Spec}
	})
	if err != nil {
		return nil, err
	}
	err = s.each(ctx, s.size, func(ctx context.Context, i int) error {
		if err := s.setStatus(ctx, name(i), succeededPod); err != nil {
			return err
		}
		_, err := pods.Patch(ctx, name(i), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return err
	})
	return readings{"indexed": time.Since(began).Seconds()}, err
}
