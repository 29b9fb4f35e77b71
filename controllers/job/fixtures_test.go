// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

const namespace = "team-a"

// newJob returns a Job as the API server stores it.
func newJob(name string, change ...func(*batchv1.Job)) *batchv1.Job {
	selector := map[string]string{batchv1.ControllerUidLabel: name}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			Completions: new(int32(1)), Parallelism: new(int32(1)), BackoffLimit: new(int32(6)),
			CompletionMode: new(batchv1.NonIndexedCompletion), PodReplacementPolicy: new(batchv1.TerminatingOrFailed),
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "main", Image: "busybox"}},
				},
			},
		},
	}
	for _, f := range change {
		f(job)
	}
	return job
}

// wants sets how many Pods are to succeed, and how many run at a time.
func wants(completions, parallelism int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Spec.Completions, job.Spec.Parallelism = &completions, &parallelism
	}
}

func isIndexed(job *batchv1.Job) { job.Spec.CompletionMode = new(batchv1.IndexedCompletion) }

// cluster is a server with Jobs and Pods, inside of a bubble of synctest. The test is its kubelet.
type cluster struct {
	*managertest.Bubble
	t          *testing.T
	jobs, pods *fakeapi.Resource
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	api := managertest.NewBubble(t)
	return &cluster{
		Bubble: api, t: t,
		jobs: api.Serve(jobs, fakeapi.WithStatus()),
		pods: api.Serve(managertest.Pods, fakeapi.WithStatus()),
	}
}

// start runs the controller. stop ends it.
func (c *cluster) start() *managertest.Process {
	c.t.Helper()
	p := managertest.Run(c.t, c.Config(), managertest.Making(New, Defaults()))
	synctest.Wait()
	return p
}

// create creates a Job, as a user would.
func (c *cluster) create(job *batchv1.Job) object.Key {
	c.t.Helper()
	made, err := client.For[*batchv1.Job](c.Client).Create(c.t.Context(), job)
	if err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
	return object.KeyOf(made)
}

// edit changes the spec of a Job, as a user would.
func (c *cluster) edit(key object.Key, change func(*batchv1.Job)) {
	c.t.Helper()
	job := c.job(key)
	change(job)
	if _, err := client.For[*batchv1.Job](c.Client).Update(c.t.Context(), job); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func (c *cluster) job(key object.Key) *batchv1.Job {
	c.t.Helper()
	job, err := fakeapi.Read[*batchv1.Job](c.jobs, key)
	if err != nil {
		c.t.Fatal(err)
	}
	return job
}

// all returns the Pods that exist.
func (c *cluster) all() []*corev1.Pod {
	c.t.Helper()
	pods, err := fakeapi.Objects[*corev1.Pod](c.pods)
	if err != nil {
		c.t.Fatal(err)
	}
	return pods
}

// active returns the Pods that have not ended and are not being deleted.
func (c *cluster) active() (active []*corev1.Pod) {
	c.t.Helper()
	for _, pod := range c.all() {
		if podstate.Active(pod) {
			active = append(active, pod)
		}
	}
	return active
}

// end ends a Pod as a kubelet would, with an exit code.
func (c *cluster) end(pod *corev1.Pod, code int32) {
	c.t.Helper()
	if err := fakeapi.Change(c.pods, object.KeyOf(pod), func(pod *corev1.Pod) { endWith(pod, code, time.Now()) }); err != nil {
		c.t.Fatal(err)
	}
}

// endWith gives a Pod the status of one that has ended.
func endWith(pod *corev1.Pod, code int32, at time.Time) {
	pod.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.Conditions = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(at)},
	}}}
}

// endAll ends all active Pods.
func (c *cluster) endAll(code int32) {
	c.t.Helper()
	for _, pod := range c.active() {
		c.end(pod, code)
	}
	pass(2 * time.Second)
}

// wantCounts compares the counters of a status.
func (c *cluster) wantCounts(when string, key object.Key, active, succeeded, failed int32) batchv1.JobStatus {
	c.t.Helper()
	status := c.job(key).Status
	if status.Active != active || status.Succeeded != succeeded || status.Failed != failed {
		c.t.Fatalf("%s the status has %d active, %d succeeded, %d failed; want %d, %d, %d: %+v",
			when, status.Active, status.Succeeded, status.Failed, active, succeeded, failed, status)
	}
	return status
}

// pass lets time pass, and the controllers do what is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
