// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestADeadlineThatIsLongerThanADurationIsNoDeadline(t *testing.T) {
	for _, seconds := range []int64{9_223_372_036, 9_223_372_037, 10_000_000_000, 99_999_999_999, math.MaxInt64} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.start()
			key := c.create(newJob("report", func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &seconds }))
			pass(24 * time.Hour)
			c.wantCounts(fmt.Sprintf("with a deadline of %d seconds", seconds), key, 1, 0, 0)
			c.endAll(0)
			if c := holds(c.job(key), batchv1.JobComplete); c == nil {
				t.Error("the Job is not complete")
			}
		})
	}
}

// adopted adds a Pod without a controller that the selector of the Job report selects.
func (c *cluster) adopted(name, index string, change ...func(*corev1.Pod)) {
	c.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{batchv1.ControllerUidLabel: "report"},
		Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: index},
	}}
	for _, f := range change {
		f(pod)
	}
	if err := c.pods.Add(pod); err != nil {
		c.t.Fatal(err)
	}
}

func TestPodsWhoseIndexIsNoIndexCountForNoneAndAreSaid(t *testing.T) {
	texts := []string{"", "one", "-1", "1.5", "1e0", " 1", "99999999999999999999", "NaN"}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for i, text := range texts {
			c.adopted(fmt.Sprint("runs-", i), text)
			c.adopted(fmt.Sprint("done-", i), text, func(pod *corev1.Pod) { endWith(pod, 0, time.Now()) })
			c.adopted(fmt.Sprint("bad-", i), text, func(pod *corev1.Pod) { endWith(pod, 1, time.Now()) })
		}
		c.adopted("beyond", "7")
		c.start()
		key := c.create(newJob("report", wants(3, 3), isIndexed))
		pass(time.Minute)
		status := c.wantCounts("with them", key, 3, 0, 0)
		if status.CompletedIndexes != "" {
			t.Errorf("the indexes %s are complete", status.CompletedIndexes)
		}
		for _, pod := range c.all() {
			if index, ok := validIndex(c.job(key), pod); !ok && tracked(pod) {
				t.Errorf("Pod %s of the index %d has the finalizer", pod.Name, index)
			}
		}
		notes := c.Notes(reasonUnreadable)
		for i, text := range texts {
			want := fmt.Sprintf("Pod runs-%d has the annotation batch.kubernetes.io/job-completion-index=%q, which is no index: it counts for no index of the Job, and is deleted", i, text)
			if !slices.Contains(notes, want) {
				t.Errorf("no Event says %q; there are %q", want, notes)
			}
		}
		if len(notes) != len(texts) {
			t.Errorf("there are %d Events, want one for each of %d Pods: %q", len(notes), len(texts), notes)
		}
		c.Forget()
		pass(time.Hour)
		if calls := c.pods.Calls(); len(calls) != 0 {
			t.Errorf("requests in an hour: %q", calls)
		}
		c.endAll(0)
		if status := c.wantCounts("at the end", key, 0, 3, 0); status.CompletedIndexes != "0-2" || holds(c.job(key), batchv1.JobComplete) == nil {
			t.Errorf("the status is %+v", status)
		}
	})
}

func TestNumbersOfFailuresThatAreNoNumbersAreSaid(t *testing.T) {
	for _, text := range []string{"", "two", "-1", "1.5", "99999999999", "NaN"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.start()
			key := c.create(newJob("report", wants(1, 1), isIndexed, func(j *batchv1.Job) {
				j.Spec.BackoffLimitPerIndex, j.Spec.BackoffLimit = new(int32(1)), new(int32(1000))
			}))
			fail := func() {
				t.Helper()
				if len(c.active()) != 1 {
					t.Fatalf("with %q there are %d active Pods: %+v", text, len(c.active()), c.job(key).Status)
				}
				c.end(c.active()[0], 1)
				pass(time.Minute)
			}
			if err := fakeapi.Change(c.pods, object.KeyOf(c.active()[0]), func(pod *corev1.Pod) { pod.Annotations[batchv1.JobIndexFailureCountAnnotation] = text }); err != nil {
				t.Fatal(err)
			}
			fail() // counts as the first one
			notes := c.Notes(reasonUnreadable)
			if len(notes) != 1 || !strings.HasSuffix(notes[0], fmt.Sprintf("has the annotation batch.kubernetes.io/job-index-failure-count=%q, which is no number of failures: earlier failures of index 0 do not count", text)) {
				t.Errorf("the Events say %q", notes)
			}
			fail() // is the last one that the limit allows
			if f := holds(c.job(key), batchv1.JobFailed); f == nil || f.Reason != batchv1.JobReasonFailedIndexes {
				t.Errorf("with %q the status is %+v", text, c.job(key).Status)
			}
		})
	}
}

func TestJobsWithOneSelectorKeepTheirOwnPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		manual := func(j *batchv1.Job) {
			labels := map[string]string{"app": "shared"}
			j.Spec.ManualSelector, j.Spec.Selector, j.Spec.Template.Labels = new(true), &metav1.LabelSelector{MatchLabels: labels}, labels
		}
		one := c.create(newJob("one", wants(2, 2), manual))
		two := c.create(newJob("two", wants(3, 3), manual))
		pass(time.Minute)
		c.wantCounts("of the first", one, 2, 0, 0)
		c.wantCounts("of the second", two, 3, 0, 0)
		c.Forget()
		pass(time.Hour)
		if calls := c.pods.Calls(); len(calls) != 0 {
			t.Errorf("requests in an hour: %q", calls)
		}
		c.endAll(0)
		c.wantCounts("of the first at its end", one, 0, 2, 0)
		c.wantCounts("of the second at its end", two, 0, 3, 0)
	})
}

func TestPodsOfAnotherNamespaceThatNameAJobDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.start()
		key := c.create(newJob("report"))
		pass(time.Second)
		for i := range 7 { // more than the backoff limit
			c.adopted(fmt.Sprint("theirs-", i), "", func(pod *corev1.Pod) {
				pod.Namespace, pod.Finalizers = "team-b", []string{"example.com/keep"}
				pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c.job(key), jobs.GroupVersionKind())}
				endWith(pod, 1, time.Now())
			})
		}
		pass(time.Minute)
		c.wantCounts("beside them", key, 1, 0, 0)
		for _, q := range c.pods.Requests() {
			if q.Key.Namespace == "team-b" {
				t.Errorf("a request about a Pod of another namespace: %s", q.String())
			}
		}
	})
}

func TestAKubeletWhoseClockIsAheadDelaysTheNextPodNoLongerThanOthers(t *testing.T) {
	perIndex := func(j *batchv1.Job) {
		j.Spec.BackoffLimitPerIndex, j.Spec.BackoffLimit = new(int32(5)), new(int32(1000))
	}
	for name, change := range map[string][]func(*batchv1.Job){"a plain Job": nil, "an index": {isIndexed, perIndex}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.start()
				key := c.create(newJob("report", change...))
				first := c.active()[0]
				pass(time.Minute)
				if err := fakeapi.Change(c.pods, object.KeyOf(first), func(pod *corev1.Pod) { endWith(pod, 1, time.Now().Add(10*time.Hour)) }); err != nil {
					t.Fatal(err)
				}
				pass(15 * time.Second)
				c.wantCounts("after the backoff", key, 1, 0, 1)
			})
		})
	}
}
