// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCounting(t *testing.T) {
	readyPod := func(since time.Duration) *corev1.Pod {
		pod := goodPod("ready")
		readyFor(since)(pod)
		return pod
	}
	waiting := goodPod("waiting")
	unready(waiting)
	unknown := goodPod("unknown")
	readyWhenever(unknown)
	half := goodPod("half")
	half.Labels = map[string]string{"app": "web", "tier": "back"}
	full := goodPod("full")
	full.Labels = map[string]string{"app": "web", "tier": "front", "more": "yes"}
	template := map[string]string{"app": "web", "tier": "front"}

	for _, c := range []struct {
		name     string
		pods     []*corev1.Pod
		labels   map[string]string
		minReady time.Duration
		want     counts
		next     time.Duration
	}{
		{"no Pods", nil, template, 0, counts{terminating: 2}, 0},
		{"labels", []*corev1.Pod{half, full}, template, 0, counts{2, 1, 2, 2, 2}, 0},
		{"an unready Pod", []*corev1.Pod{waiting}, nil, 0, counts{1, 1, 0, 0, 2}, 0},
		{"ready is available at once", []*corev1.Pod{readyPod(0), unknown}, nil, 0, counts{2, 2, 2, 2, 2}, 0},
		{"ready for long enough, to the moment", []*corev1.Pod{readyPod(10 * time.Second)}, nil, 10 * time.Second, counts{1, 1, 1, 1, 2}, 0},
		{"ready for less", []*corev1.Pod{readyPod(9 * time.Second)}, nil, 10 * time.Second, counts{1, 1, 1, 0, 2}, time.Second},
		{"the earliest of several", []*corev1.Pod{readyPod(2 * time.Second), readyPod(7 * time.Second), readyPod(4 * time.Second), readyPod(time.Minute), waiting},
			nil, 10 * time.Second, counts{5, 5, 4, 1, 2}, 3 * time.Second},
		{"ready since nobody knows", []*corev1.Pod{unknown}, nil, 10 * time.Second, counts{1, 1, 1, 0, 2}, 10 * time.Second},
		{"ready in the future", []*corev1.Pod{readyPod(-time.Second)}, nil, 10 * time.Second, counts{1, 1, 1, 0, 2}, 11 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, next := count(claimed{active: c.pods, terminating: 2}, c.labels, c.minReady, noon)
			if got != c.want || next != c.next {
				t.Errorf("count = %+v, next in %v; want %+v, %v", got, next, c.want, c.next)
			}
		})
	}
}

func TestFailureCondition(t *testing.T) {
	other := appsv1.ReplicaSetCondition{Type: "Other", Status: corev1.ConditionTrue}
	standing := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedDelete", Message: "first"}
	failed := &failure{reason: failedCreate, cause: errors.New("no room")}
	for _, c := range []struct {
		name    string
		old     []appsv1.ReplicaSetCondition
		failure *failure
		want    []appsv1.ReplicaSetCondition
		changed bool
	}{
		{"nothing fails", nil, nil, nil, false},
		{"nothing fails beside another condition", []appsv1.ReplicaSetCondition{other}, nil, []appsv1.ReplicaSetCondition{other}, false},
		{"something fails", []appsv1.ReplicaSetCondition{other}, failed, []appsv1.ReplicaSetCondition{other, {
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "no room", LastTransitionTime: metav1.NewTime(noon),
		}}, true},
		{"something still fails", []appsv1.ReplicaSetCondition{standing}, failed, []appsv1.ReplicaSetCondition{standing}, false},
		{"nothing fails any more", []appsv1.ReplicaSetCondition{standing, other}, nil, []appsv1.ReplicaSetCondition{other}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, changed := failureCondition(c.old, c.failure, noon)
			if changed != c.changed || len(got) != len(c.want) {
				t.Fatalf("failureCondition = %v, changed %t; want %v, %t", got, changed, c.want, c.changed)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("condition %d is %v, want %v", i, got[i], c.want[i])
				}
			}
		})
	}
}

func TestEachFieldOfTheStatusIsAReasonToWriteIt(t *testing.T) {
	set := webSet(1)
	set.Generation = 3
	s := state{counts: counts{replicas: 5, fullyLabeled: 4, ready: 3, available: 2, terminating: 1}, at: noon}
	status, changed := newStatus(set, s)
	if !changed {
		t.Fatal("the first status is no change")
	}
	set.Status = status
	if _, changed := newStatus(set, s); changed {
		t.Error("the same status is a change")
	}
	for name, change := range map[string]func(*appsv1.ReplicaSet, *state){
		"replicas":            func(_ *appsv1.ReplicaSet, s *state) { s.replicas++ },
		"fullyLabeled":        func(_ *appsv1.ReplicaSet, s *state) { s.fullyLabeled++ },
		"ready":               func(_ *appsv1.ReplicaSet, s *state) { s.ready++ },
		"available":           func(_ *appsv1.ReplicaSet, s *state) { s.available++ },
		"terminating":         func(_ *appsv1.ReplicaSet, s *state) { s.terminating++ },
		"terminating unknown": func(set *appsv1.ReplicaSet, _ *state) { set.Status.TerminatingReplicas = nil },
		"generation":          func(set *appsv1.ReplicaSet, _ *state) { set.Generation++ },
		"failure":             func(_ *appsv1.ReplicaSet, s *state) { s.failure = &failure{failedCreate, errors.New("no room")} },
	} {
		t.Run(name, func(t *testing.T) {
			set, s := set.DeepCopy(), s
			change(set, &s)
			if _, changed := newStatus(set, s); !changed {
				t.Error("the status is not written")
			}
		})
	}
}
