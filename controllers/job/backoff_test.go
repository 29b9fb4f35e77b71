// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// ended returns a Pod that ended some time ago.
func ended(ago time.Duration, code int32, uid types.UID, finalizers ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, UID: uid, Finalizers: finalizers}}
	endWith(pod, code, noon.Add(-ago))
	return pod
}

func TestTheBackoffDoublesUpToItsLimit(t *testing.T) {
	for failures, want := range map[int32]time.Duration{
		0: 0, 1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 1 << 30: 10 * time.Minute,
	} {
		if got := (backoff{failures, noon}).left(noon); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
	if got := (backoff{1, noon}).left(noon.Add(4 * time.Second)); got != 6*time.Second {
		t.Errorf("after 4 s: %s", got)
	}
	if got := (backoff{1, noon}).left(noon.Add(time.Hour)); got != 0 {
		t.Errorf("after an hour: %s", got)
	}
}

func TestOnlyFailuresAfterTheLastSuccessCount(t *testing.T) {
	list := func(pods ...*corev1.Pod) []*corev1.Pod { return pods }
	before := backoff{2, noon.Add(-time.Hour)}
	for _, c := range []struct {
		name              string
		succeeded, failed []*corev1.Pod
		want              backoff
	}{
		{"nothing new", nil, nil, before},
		{"failures", nil, list(ended(time.Minute, 1, "a"), ended(time.Second, 1, "b")), backoff{4, noon.Add(-time.Second)}},
		{"a success", list(ended(time.Second, 0, "a")), nil, backoff{}},
		{"a failure before the success", list(ended(time.Second, 0, "a")), list(ended(time.Minute, 1, "b")), backoff{}},
		{"a failure after it", list(ended(time.Minute, 0, "a")), list(ended(time.Hour, 1, "b"), ended(time.Second, 1, "c")), backoff{1, noon.Add(-time.Second)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := before.with(c.succeeded, c.failed); got.failures != c.want.failures || !got.last.Equal(c.want.last) {
				t.Errorf("the backoff is %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestANewProcessFindsTheBackoffInThePodsAndInTheStatus(t *testing.T) {
	job := newJob("report")
	job.Status.Failed = 3
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"listed"}}
	pods := []*corev1.Pod{
		ended(time.Minute, 1, "counted"), ended(5*time.Second, 1, "listed", batchv1.JobTrackingFinalizer), ended(0, 1, "new", batchv1.JobTrackingFinalizer),
	}
	// Two of the four are gone. The new one is counted by the run itself.
	if got := recovered(job, countedOf(job, pods)); got.failures != 4 || !got.last.Equal(noon.Add(-5*time.Second)) {
		t.Errorf("the backoff is %+v", got)
	}
	pods = append(pods, ended(30*time.Second, 0, "success"))
	job.Status.Succeeded = 1
	if got := recovered(job, countedOf(job, pods)); got.failures != 1 {
		t.Errorf("after a success the backoff is %+v", got)
	}
}

func TestWhenAPodEnded(t *testing.T) {
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-ago)) }
	done := func(name string, ago time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(ago)}}}
	}
	unready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(3 * time.Hour)}}
	for _, c := range []struct {
		name string
		pod  corev1.Pod
		ago  time.Duration
	}{
		{"the last container", corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{done("a", time.Hour), done("b", time.Minute)}}}, time.Minute},
		{"a sidecar that ended later", corev1.Pod{
			Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}, {Name: "init"}}},
			Status: corev1.PodStatus{
				ContainerStatuses:     []corev1.ContainerStatus{done("a", time.Hour)},
				InitContainerStatuses: []corev1.ContainerStatus{done("proxy", time.Minute), done("init", time.Second)},
			},
		}, time.Minute},
		{"a container that does not say", corev1.Pod{Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{done("a", time.Hour), {Name: "b"}}, Conditions: unready,
		}}, 3 * time.Hour},
		{"a Pod that was deleted", corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: at(5 * time.Hour), DeletionTimestamp: new(at(time.Hour)), DeletionGracePeriodSeconds: new(int64(60)),
		}}, time.Hour + time.Minute},
		{"nothing but its creation", corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(5 * time.Hour)}}, 5 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := finishTime(&c.pod); !got.Equal(noon.Add(-c.ago)) {
				t.Errorf("it ended %s ago, want %s", noon.Sub(got), c.ago)
			}
		})
	}
}
