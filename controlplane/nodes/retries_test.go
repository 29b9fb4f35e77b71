// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// retried is a store with Pods that fail at first.
type retried struct{ *store }

// add adds a Pod of a Job and returns its state.
func (r retried) add(name, owner, kind, index string) *podState {
	pod := with(newPod(corev1.RestartPolicyNever), ownedBy("batch/v1", kind))
	pod.Name, pod.UID, pod.ResourceVersion = name, types.UID(name), "1"
	pod.OwnerReferences[0].UID = types.UID(owner)
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = index
	r.putPod(pod)
	return r.pods[podKey(pod).name]
}

func TestRunsThatFailAreCountedOverThePodsOfAJob(t *testing.T) {
	r := retried{newStore()}
	first := r.add("first", "job", "Job", "")
	for range 2 { // the answer stays
		if !r.failsFirst(first, "web", 0, 2) {
			t.Error("the first run does not fail")
		}
	}
	second := r.add("second", "job", "Job", "")
	if !r.failsFirst(second, "web", 0, 2) {
		t.Error("the second run does not fail")
	}
	if !r.failsFirst(second, "db", 0, 1) {
		t.Error("another container does not count for itself")
	}
	if r.failsFirst(r.add("third", "job", "Job", ""), "web", 0, 2) {
		t.Error("the third run fails")
	}
	if !r.failsFirst(r.add("other", "other", "Job", ""), "web", 0, 1) {
		t.Error("another Job does not count for itself")
	}
}

func TestRunsThatFailAreCountedForEachIndexAndForEachOtherPod(t *testing.T) {
	r := retried{newStore()}
	for _, test := range []struct {
		name, kind, index string
		number            int32
		want              bool
	}{
		{"zero-a", "Job", "0", 0, true},
		{"one-a", "Job", "1", 0, true},
		{"zero-b", "Job", "0", 0, false},
		{"web-a", "ReplicaSet", "", 0, true},
		{"web-b", "ReplicaSet", "", 0, true},
		{"web-b", "ReplicaSet", "", 1, false},
	} {
		state := r.pods[types.NamespacedName{Namespace: "default", Name: test.name}]
		if state == nil {
			state = r.add(test.name, "owner", test.kind, test.index)
		}
		if got := r.failsFirst(state, "web", test.number, 1); got != test.want {
			t.Errorf("%s, run %d: fails %t, want %t", test.name, test.number, got, test.want)
		}
	}
}

// After a restart of the simulation the statuses are what is known.
func TestRunsThatFailedEarlierAreReadFromTheStatus(t *testing.T) {
	terminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	for name, test := range map[string]struct {
		status corev1.ContainerStatus
		want   int32
	}{
		"running":             {corev1.ContainerStatus{RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: terminated}, 2},
		"failed":              {corev1.ContainerStatus{RestartCount: 2, State: terminated}, 3},
		"waiting for restart": {corev1.ContainerStatus{RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, LastTerminationState: terminated}, 3},
		"succeeded":           {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}, 0},
	} {
		pod := newPod(corev1.RestartPolicyAlways)
		test.status.Name = "web"
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{test.status}
		if got := statedFailures(pod, "web"); got != test.want {
			t.Errorf("%s: %d failures, want %d", name, got, test.want)
		}
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = pod.Status.ContainerStatuses, nil
		if got := statedFailures(pod, "web"); got != test.want {
			t.Errorf("an init container that is %s: %d failures, want %d", name, got, test.want)
		}
	}
	if got := statedFailures(newPod(corev1.RestartPolicyAlways), "web"); got != 0 {
		t.Errorf("without a status: %d failures", got)
	}
}

func TestPodsThatEndAtTheSameTimeAreCountedExactly(t *testing.T) {
	r := retried{newStore()}
	var states []*podState
	for i := range 50 {
		states = append(states, r.add(fmt.Sprint("pod-", i), "job", "Job", ""))
	}
	var failed atomic.Int32
	var all sync.WaitGroup
	for _, state := range states {
		all.Go(func() {
			if r.failsFirst(state, "web", 0, 7) {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	if failed.Load() != 7 {
		t.Errorf("%d of 50 Pods fail, want 7", failed.Load())
	}
}
