// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"strings"
	"sync/atomic"
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
		if notes := c.Notes(reasonCompleted); len(notes) != 1 || notes[0] != "Job completed" {
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
		if notes := c.Notes(batchv1.JobReasonBackoffLimitExceeded); len(notes) != 1 || notes[0] != "Job has reached the specified backoff limit" {
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
		if len(c.Notes(reasonSuspended)) != 1 || len(c.Notes(reasonResumed)) != 1 {
			t.Errorf("the Events are %q and %q", c.Notes(reasonSuspended), c.Notes(reasonResumed))
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
					if err := client.For[*corev1.Pod](c.Client).Delete(t.Context(), object.KeyOf(pod)); err != nil {
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
		if notes := c.Notes("FailedCreate"); len(notes) > 0 {
			t.Errorf("the Events say %q", notes)
		}
	})
}

// A Pod that was chosen for deletion succeeds before the controller writes.
func TestAPodThatEndsWhileItIsDeletedAsOneTooManyIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(5, 2)))
		pass(2 * time.Second)
		victims := c.active()
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			for _, pod := range victims {
				if q.Verb == "patch" && strings.HasSuffix(q.HTTP.URL.Path, "/"+pod.Name) {
					c.end(pod, 0)
				}
			}
			return nil
		})
		c.edit(key, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
		pass(5 * time.Second)
		c.wantCounts("after both have ended", key, 0, 2, 0)
	})
}

// A Pod that is one too many changes while it is deleted, in a way that matters for nothing else.
func TestASurplusPodThatChangesMeanwhileGoesAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(5, 2)))
		pass(2 * time.Second)
		changed := false
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "patch" && !changed {
				changed = true
				if err := fakeapi.Change(c.pods, q.Key, func(p *corev1.Pod) { p.Annotations = map[string]string{"cni": "10.0.0.1"} }); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		c.edit(key, func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(1)) })
		pass(time.Minute)
		if n := len(c.active()); !changed || n != 1 {
			t.Errorf("%d Pods are active, want 1; changed meanwhile: %v", n, changed)
		}
	})
}

// A deadline ends a Job in time also while its Pods cannot be created.
func TestADeadlineIsKeptWhilePodsCannotBeCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" {
				return fakeapi.Forbidden("pods")
			}
			return nil
		})
		c.start()
		key := c.create(newJob("report", wants(2, 2), func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(100)) }))
		pass(105 * time.Second)
		if f := holds(c.job(key), batchv1.JobFailed); f == nil || f.Reason != batchv1.JobReasonDeadlineExceeded {
			t.Errorf("the conditions are %+v", c.job(key).Status.Conditions)
		}
	})
}

// Each answer to a write is lost once, in turn. The server has carried the write out.
func TestAWriteWhoseAnswerIsLostCountsNoPodTwice(t *testing.T) {
	for n := range int32(12) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			var writes atomic.Int32
			lose := func(q *fakeapi.Request) bool {
				return q.Verb != "get" && q.Verb != "list" && q.Verb != "watch" && writes.Add(1) == n+1
			}
			c.pods.LoseAnswer(lose)
			c.jobs.LoseAnswer(lose)
			c.start()
			job := newJob("report", wants(4, 2))
			if err := c.jobs.Add(job); err != nil {
				t.Fatal(err)
			}
			key := object.KeyOf(job)
			for range 6 {
				c.endAll(0)
				pass(2 * time.Minute)
			}
			status := c.wantCounts("at the end", key, 0, 4, 0)
			if holds(c.job(key), batchv1.JobComplete) == nil || len(c.all()) != 4 {
				t.Errorf("with the loss of answer %d there are %d Pods, and the status is %+v", n+1, len(c.all()), status)
			}
		})
	}
}

// The watch of Pods is held for longer than the loop waits for its own writes. The cache shows
// neither the Pods that the controller has created nor their ends.
func TestAStaleCacheCreatesAndCountsNoPodTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.pods.HoldWatches(true)
		key := c.create(newJob("report", wants(3, 3)))
		for _, pod := range c.active() {
			c.end(pod, 0)
		}
		pass(20 * time.Minute)
		c.wantCounts("while the cache is behind", key, 3, 0, 0)
		c.pods.HoldWatches(false)
		pass(2 * time.Minute)
		c.wantCounts("after it has caught up", key, 0, 3, 0)
		if len(c.all()) != 3 {
			t.Errorf("there are %d Pods", len(c.all()))
		}
	})
}

func TestAnEditMeanwhileIsNoFailureAndLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := c.start()
		key := c.create(newJob("report", wants(4, 2)))
		pass(2 * time.Second)
		edits := 0
		c.jobs.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && strings.HasSuffix(q.HTTP.URL.Path, "/status") && edits < 3 {
				edits++
				if err := fakeapi.Change(c.jobs, key, func(j *batchv1.Job) { j.Labels = map[string]string{"edit": string(rune('a' + edits))} }); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		for range 4 {
			c.endAll(0)
			pass(10 * time.Second)
		}
		c.wantCounts("at the end", key, 0, 4, 0)
		if edits != 3 || len(p.Warnings()) > 0 {
			t.Errorf("after %d edits the log says %q", edits, p.Warnings())
		}
	})
}

func TestARefusalOfPodsIsReportedAndRetriedEverLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var creates atomic.Int32
		var allowed atomic.Bool
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "create" {
				return nil
			}
			creates.Add(1)
			if !allowed.Load() {
				return fakeapi.Forbidden("exceeded quota: few, requested: pods=1")
			}
			return nil
		})
		c.start()
		key := c.create(newJob("report", wants(50, 50)))
		pass(time.Hour)
		if n := creates.Load(); n > 70 {
			t.Errorf("%d creates in an hour, want one at most in each minute", n)
		}
		if notes := c.Notes("FailedCreate"); len(notes) == 0 || !strings.Contains(notes[0], "exceeded quota") {
			t.Errorf("the Events say %q", notes)
		}
		allowed.Store(true)
		pass(2 * time.Minute)
		c.wantCounts("with a quota again", key, 50, 0, 0)
	})
}

func TestPodsAreAdoptedAndReleasedWithTheirFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orphan", Labels: map[string]string{batchv1.ControllerUidLabel: "report"}}}
		if err := c.pods.Add(orphan); err != nil {
			t.Fatal(err)
		}
		c.start()
		key := c.create(newJob("report", wants(2, 2)))
		pass(5 * time.Second)
		adopted, err := fakeapi.Read[*corev1.Pod](c.pods, object.KeyOf(orphan))
		if err != nil || !tracked(adopted) || metav1.GetControllerOf(adopted) == nil || len(c.all()) != 2 {
			t.Fatalf("there are %d Pods, and the orphan is %+v: %v", len(c.all()), adopted.ObjectMeta, err)
		}
		if err := fakeapi.Change(c.pods, object.KeyOf(orphan), func(pod *corev1.Pod) { pod.Labels = nil }); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		released, err := fakeapi.Read[*corev1.Pod](c.pods, object.KeyOf(orphan))
		if err != nil || tracked(released) || metav1.GetControllerOf(released) != nil || len(c.all()) != 3 {
			t.Fatalf("there are %d Pods, and the released one is %+v: %v", len(c.all()), released.ObjectMeta, err)
		}
		c.wantCounts("at the end", key, 2, 0, 0)
	})
}

func TestAnOrphanLosesItsFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orphan", Finalizers: []string{"example.com/other", batchv1.JobTrackingFinalizer}}}
		if err := c.pods.Add(orphan); err != nil {
			t.Fatal(err)
		}
		c.start()
		freed, err := fakeapi.Read[*corev1.Pod](c.pods, object.KeyOf(orphan))
		if err != nil || tracked(freed) || len(freed.Finalizers) != 1 {
			t.Errorf("the orphan is %+v: %v", freed.ObjectMeta, err)
		}
	})
}

// The cache of Jobs is behind that of Pods: the Job of a Pod seems to be gone.
func TestAJobThatTheCacheDoesNotShowYetKeepsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.jobs.HoldWatches(true)
		job := newJob("report")
		key := c.create(job)
		live := c.job(key)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "report-x", Labels: live.Spec.Template.Labels, Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(live, jobs.GroupVersionKind())},
		}}
		if err := c.pods.Add(pod); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if !tracked(c.all()[0]) {
			t.Fatal("the Pod has lost its finalizer")
		}
		c.jobs.HoldWatches(false)
		pass(time.Minute)
		if len(c.all()) != 1 || !tracked(c.all()[0]) {
			t.Errorf("there are %d Pods", len(c.all()))
		}
	})
}

func TestAnIndexThatFailsStartsAgainLaterAndKnowsItsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", wants(2, 2), isIndexed, func(j *batchv1.Job) {
			j.Spec.BackoffLimitPerIndex, j.Spec.BackoffLimit = new(int32(1)), new(int32(1000))
		}))
		failing := func() *corev1.Pod {
			for _, pod := range c.active() {
				if indexOf(pod) == 1 {
					return pod
				}
			}
			return nil
		}
		if pod := failing(); pod.Annotations[batchv1.JobIndexFailureCountAnnotation] != "0" {
			t.Errorf("the first Pod has the annotations %v", pod.Annotations)
		}
		c.end(failing(), 1)
		pass(9 * time.Second)
		if failing() != nil {
			t.Error("the index runs again at once")
		}
		pass(2 * time.Second)
		if pod := failing(); pod == nil || pod.Annotations[batchv1.JobIndexFailureCountAnnotation] != "1" {
			t.Fatalf("the second Pod is %+v", pod)
		}
		c.end(failing(), 1)
		pass(time.Minute)
		if status := c.wantCounts("after two failures", key, 1, 0, 2); *status.FailedIndexes != "1" || failing() != nil {
			t.Errorf("the status is %+v", status)
		}
		c.endAll(0)
		if f := holds(c.job(key), batchv1.JobFailed); f == nil || f.Reason != batchv1.JobReasonFailedIndexes {
			t.Errorf("the status is %+v", c.job(key).Status)
		}
	})
}

func TestAnUnknownCompletionModeIsReportedAndDelaysNoOtherJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		c.create(newJob("odd", func(j *batchv1.Job) { j.Spec.CompletionMode = new(batchv1.CompletionMode("Shuffled")) }))
		key := c.create(newJob("report"))
		pass(time.Minute)
		c.wantCounts("beside it", key, 1, 0, 0)
		if notes := c.Notes(reasonUnknownMode); len(notes) != 1 || notes[0] != "Skipped Job sync because completion mode is unknown" {
			t.Errorf("the Events say %q", notes)
		}
	})
}

func TestContainersThatRestartTooOftenHaveTheirLastWordsInAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report", func(j *batchv1.Job) {
			j.Spec.BackoffLimit, j.Spec.Template.Spec.RestartPolicy = new(int32(3)), corev1.RestartPolicyOnFailure
		}))
		pod := c.active()[0]
		err := fakeapi.Change(c.pods, object.KeyOf(pod), func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 3, LastTerminationState: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"},
			}}}
		})
		if err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		want := "Deleting pod " + pod.Name + " with its logs: container main has restarted 3 times and ended last with exit code 137 (OOMKilled)"
		if notes := c.Notes(reasonRestarts); len(notes) != 1 || notes[0] != want {
			t.Errorf("the Events say %q, want %q", notes, want)
		}
		c.wantCounts("at the end", key, 0, 0, 1)
	})
}

// The server removes a Pod that is being deleted with its last finalizer, and answers with the
// version that the Pod had before. So the loop does not wait until the cache shows the removal.
func TestAPodThatGoesWithItsFinalizerIsCountedOnceWhileTheCacheShowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report"))
		pod := c.active()[0]
		if err := client.For[*corev1.Pod](c.Client).Delete(t.Context(), object.KeyOf(pod), client.GracePeriod(0)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the cache shows the deletion, and the run waits for the end of the second
		c.pods.HoldWatches(true)
		pass(2 * time.Second)
		for n := range int32(3) { // each change starts a run
			c.edit(key, func(j *batchv1.Job) { j.Spec.Parallelism = new(2 + n) })
			pass(time.Second)
		}
		c.wantCounts("while the cache is behind", key, 0, 0, 1)
		c.pods.HoldWatches(false)
		pass(20 * time.Second)
		c.wantCounts("after it has caught up", key, 1, 0, 1)
	})
}
