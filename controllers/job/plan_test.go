// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/podwriter"
)

// podOf returns a Pod of an index that runs.
func podOf(name string, index int, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Finalizers: []string{batchv1.JobTrackingFinalizer}},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if index != noIndex {
		pod.Annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(index)}
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func withCode(code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { endWith(pod, code, noon.Add(-time.Minute)) }
}

func isDeleted(pod *corev1.Pod) {
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(noon)), new(int64(30))
}

// codes returns the codes of the reasons of a plan.
func codes(p *plan) (all []string) {
	for _, r := range p.reasons {
		all = append(all, r.Code)
	}
	return all
}

func names(pods []*corev1.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Name)
	}
	return strings.Join(all, " ")
}

func TestWhatARunDoes(t *testing.T) {
	started := func(j *batchv1.Job) { j.Status.StartTime = new(metav1.NewTime(noon.Add(-time.Hour))) }
	for _, c := range []struct {
		name   string
		spec   []func(*batchv1.Job)
		pods   []*corev1.Pod
		create string
		remove string
		stop   string
		reason string
	}{
		{"nothing runs yet", []func(*batchv1.Job){wants(5, 2)}, nil, "[-1 -1]", "", "", ""},
		{"as many as are missing", []func(*batchv1.Job){wants(3, 9)}, []*corev1.Pod{podOf("a", noIndex)}, "[-1 -1]", "", "", ""},
		{"enough run", []func(*batchv1.Job){wants(5, 1)}, []*corev1.Pod{podOf("a", noIndex)}, "[]", "", "", "PodsRun"},
		{"fewer are wanted: the Pod without a node goes", []func(*batchv1.Job){wants(5, 1)},
			[]*corev1.Pod{podOf("a", noIndex), podOf("b", noIndex, func(p *corev1.Pod) { p.Spec.NodeName = "" })}, "[]", "b", "", ""},
		{"none at a time", []func(*batchv1.Job){wants(5, 0)}, nil, "[]", "", "", "ParallelismIsZero"},
		{"suspended", []func(*batchv1.Job){wants(5, 2), func(j *batchv1.Job) { j.Spec.Suspend = new(true) }}, []*corev1.Pod{podOf("a", noIndex)}, "[]", "a", "", "Suspended"},
		{"being deleted", []func(*batchv1.Job){wants(5, 2), func(j *batchv1.Job) { j.DeletionTimestamp = new(metav1.NewTime(noon)) }},
			[]*corev1.Pod{podOf("a", noIndex)}, "[]", "", "", "JobIsDeleted"},
		{"a Pod that terminates is replaced", []func(*batchv1.Job){wants(5, 1), func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(9)) }},
			[]*corev1.Pod{podOf("a", noIndex, isDeleted, func(p *corev1.Pod) { p.Finalizers = nil })}, "[-1]", "", "", ""},
		{"it is not while only failed Pods are", []func(*batchv1.Job){wants(5, 1), func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = new(batchv1.Failed) }},
			[]*corev1.Pod{podOf("a", noIndex, isDeleted)}, "[]", "", "", "PodsTerminate"},
		{"a failure delays the next", []func(*batchv1.Job){wants(5, 1)}, []*corev1.Pod{podOf("a", noIndex, func(p *corev1.Pod) { endWith(p, 1, noon) })}, "[]", "", "", "PodsFailed"},
		{"the last failure", []func(*batchv1.Job){wants(5, 2), func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(0)) }},
			[]*corev1.Pod{podOf("a", noIndex, withCode(1)), podOf("b", noIndex)}, "[]", "", "b", ""},
		{"the deadline", []func(*batchv1.Job){wants(5, 2), started, func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(3600)) }},
			[]*corev1.Pod{podOf("b", noIndex)}, "[]", "", "b", ""},
		{"one success is enough", []func(*batchv1.Job){wants(5, 3), func(j *batchv1.Job) { j.Spec.Completions = nil }},
			[]*corev1.Pod{podOf("a", noIndex, withCode(0)), podOf("b", noIndex)}, "[]", "", "", "PodsRun"},
		{"the first indexes that are missing", []func(*batchv1.Job){wants(9, 4), isIndexed, func(j *batchv1.Job) { j.Status.CompletedIndexes = "0,2" }},
			[]*corev1.Pod{podOf("a", 3)}, "[1 4 5]", "", "", ""},
		{"an index twice: the older one stays", []func(*batchv1.Job){wants(3, 3), isIndexed}, []*corev1.Pod{
			podOf("old", 1, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }),
			podOf("new", 1, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Second)) }), podOf("other", 0),
		}, "[]", "new", "", ""},
		{"indexes that the Job does not have", []func(*batchv1.Job){wants(3, 3), isIndexed}, []*corev1.Pod{podOf("none", noIndex), podOf("beyond", 3), podOf("c", 2)}, "[]", "none beyond", "", ""},
		{"an index that is no number", []func(*batchv1.Job){wants(3, 3), isIndexed}, []*corev1.Pod{
			podOf("odd", 0, func(p *corev1.Pod) { p.Annotations[batchv1.JobCompletionIndexAnnotation] = "zero" }),
		}, "[]", "odd", "", ""},
		{"no node", []func(*batchv1.Job){wants(5, 1)}, []*corev1.Pod{podOf("a", noIndex, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room"}}
		})}, "[]", "", "", "PodsUnschedulable PodsRun"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := newJob("report", c.spec...)
			before := job.DeepCopy()
			p := decide(view{job: job, pods: c.pods, now: noon, options: Defaults()})
			if fmt.Sprint(p.create) != c.create || names(p.remove) != c.remove || names(p.stop) != c.stop || strings.Join(codes(p), " ") != c.reason {
				t.Errorf("it creates %v, removes %q, stops %q, because %q; want %s, %q, %q, %q",
					p.create, names(p.remove), names(p.stop), codes(p), c.create, c.remove, c.stop, c.reason)
			}
			p.account()
			p.settle(p.strip)
			if before.String() != job.String() {
				t.Error("the Job of the cache has changed")
			}
		})
	}
}

// The smaller number of completions leaves out what has succeeded beyond it.
func TestAnElasticJobShrinksAndGrows(t *testing.T) {
	job := newJob("report", wants(3, 3), isIndexed, func(j *batchv1.Job) { j.Status.CompletedIndexes, j.Status.Succeeded = "1,4-5", 3 })
	p := decide(view{job: job, pods: []*corev1.Pod{podOf("a", 0), podOf("b", 3)}, now: noon, options: Defaults()})
	if names(p.remove) != "b" {
		t.Fatalf("it removes %q", names(p.remove))
	}
	p.deleted(p.remove)
	p.untracked(p.remove)
	p.account()
	if p.status.Succeeded != 1 || p.status.CompletedIndexes != "1" || p.status.Active != 1 {
		t.Errorf("the status is %+v", p.status)
	}
	job.Spec.Completions, job.Spec.Parallelism = new(int32(5)), new(int32(5))
	job.Status = p.status
	p = decide(view{job: job, pods: []*corev1.Pod{podOf("a", 0)}, now: noon, options: Defaults()})
	if !slices.Equal(p.create, []int{2, 3, 4}) {
		t.Errorf("it creates %v", p.create)
	}
}

// The server refuses a status in which an index has succeeded and failed.
func TestAnIndexThatHasSucceededDoesNotFail(t *testing.T) {
	job := newJob("report", wants(3, 3), isIndexed, func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = new(int32(0)) })
	p := decide(view{job: job, pods: []*corev1.Pod{podOf("a", 1, withCode(1)), podOf("b", 1, withCode(0))}, now: noon, options: Defaults()})
	p.account()
	if p.status.CompletedIndexes != "1" || *p.status.FailedIndexes != "" {
		t.Errorf("completed %q, failed %q", p.status.CompletedIndexes, *p.status.FailedIndexes)
	}
}

// A suspended Job has no start time. Its last Pod succeeds while it is deleted.
func TestAJobThatEndsWhileItIsSuspendedHasAStartTime(t *testing.T) {
	job := newJob("report", wants(1, 1), func(j *batchv1.Job) {
		j.Spec.Suspend = new(true)
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}
	})
	p := decide(view{job: job, pods: []*corev1.Pod{podOf("a", noIndex, withCode(0))}, now: noon, options: Defaults()})
	p.account()
	p.settle(p.strip)
	if find(p.status.Conditions, batchv1.JobComplete) == nil || p.status.StartTime == nil {
		t.Errorf("the status is %+v", p.status)
	}
}

func TestPodsOfIndexesHaveTheirNamesAndVariables(t *testing.T) {
	long := strings.Repeat("j", 63)
	job := newJob(long, wants(200_000, 2), isIndexed, func(j *batchv1.Job) {
		spec := &j.Spec.Template.Spec
		spec.InitContainers = []corev1.Container{{Name: "init"}}
		spec.Containers = append(spec.Containers, corev1.Container{Name: "own", Env: []corev1.EnvVar{{Name: indexVariable, Value: "mine"}}})
	})
	p := &plan{state: &state{}, create: []int{0, 123_456}}
	pods := newPods(podwriter.Owner{Object: job, Kind: jobs}, job, p, "")
	for i, want := range []string{strings.Repeat("j", 55) + "-0-", strings.Repeat("j", 50) + "-123456-"} {
		pod := pods[i]
		index := strconv.Itoa(p.create[i])
		if pod.GenerateName != want || len(want) != 58 || pod.Labels[batchv1.JobCompletionIndexAnnotation] != index ||
			pod.Annotations[batchv1.JobCompletionIndexAnnotation] != index || pod.Spec.Hostname != long+"-"+index || !tracked(pod) {
			t.Errorf("Pod %d has the name %s, labels %v, annotations %v, host name %s", i, pod.GenerateName, pod.Labels, pod.Annotations, pod.Spec.Hostname)
		}
		c := pod.Spec.Containers
		if c[1].Env[0].Value != "mine" || len(c[1].Env) != 1 || pod.Spec.InitContainers[0].Env[0].Name != indexVariable ||
			c[0].Env[0].ValueFrom.FieldRef.FieldPath != "metadata.labels['batch.kubernetes.io/job-completion-index']" {
			t.Errorf("the containers are %+v", c)
		}
	}
	if len(job.Spec.Template.Spec.Containers[0].Env) > 0 || len(job.Spec.Template.Finalizers) > 0 {
		t.Error("the template has changed")
	}
}

// A run of a Job of 100,000 completions must not look at each index.
func BenchmarkARunOfALargeJob(b *testing.B) {
	var done intervals
	for i := range 1000 {
		done = done.extend(interval{i * 90, i*90 + 80})
	}
	job := newJob("report", wants(100_000, 500), isIndexed, func(j *batchv1.Job) { j.Status.CompletedIndexes = done.String() })
	var pods []*corev1.Pod
	for i := range 400 {
		pods = append(pods, podOf(fmt.Sprint("p", i), i*90+85))
	}
	for b.Loop() {
		p := decide(view{job: job, pods: pods, now: noon, options: Defaults()})
		p.account()
		p.settle(nil)
		if len(p.create) != 100 {
			b.Fatal(len(p.create))
		}
	}
}
