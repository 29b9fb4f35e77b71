// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/podwriter"
)

func TestFailureCondition(t *testing.T) {
	other := appsv1.ReplicaSetCondition{Type: "Other", Status: corev1.ConditionTrue}
	standing := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedDelete", Message: "first"}
	failed := &failure{reason: podwriter.FailedCreate, cause: errors.New("no room")}
	for _, c := range []struct {
		name    string
		old     []appsv1.ReplicaSetCondition
		failure *failure
		want    []appsv1.ReplicaSetCondition
	}{
		{"nothing fails", nil, nil, nil},
		{"nothing fails beside another condition", []appsv1.ReplicaSetCondition{other}, nil, []appsv1.ReplicaSetCondition{other}},
		{"something fails", []appsv1.ReplicaSetCondition{other}, failed, []appsv1.ReplicaSetCondition{other, {
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "no room", LastTransitionTime: metav1.NewTime(noon),
		}}},
		{"something still fails", []appsv1.ReplicaSetCondition{standing}, failed, []appsv1.ReplicaSetCondition{standing}},
		{"nothing fails any more", []appsv1.ReplicaSetCondition{standing, other}, nil, []appsv1.ReplicaSetCondition{other}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := failureCondition(c.old, c.failure, noon); !slices.Equal(got, c.want) {
				t.Errorf("failureCondition = %v, want %v", got, c.want)
			}
		})
	}
}

func TestEachFieldOfTheStatusFollowsThePods(t *testing.T) {
	s := state{counts: counts{replicas: 5, fullyLabeled: 4, ready: 3, available: 2, terminating: 1}, at: noon}
	first := newStatus(appsv1.ReplicaSetStatus{}, 3, s)
	if again := newStatus(first, 3, s); !equality.Semantic.DeepEqual(first, again) {
		t.Errorf("the status changes from %v to %v, and nothing happened", first, again)
	}
	for name, change := range map[string]func(*state, *int64){
		"replicas":     func(s *state, _ *int64) { s.replicas++ },
		"fullyLabeled": func(s *state, _ *int64) { s.fullyLabeled++ },
		"ready":        func(s *state, _ *int64) { s.ready++ },
		"available":    func(s *state, _ *int64) { s.available++ },
		"terminating":  func(s *state, _ *int64) { s.terminating++ },
		"generation":   func(_ *state, generation *int64) { *generation++ },
		"failure":      func(s *state, _ *int64) { s.failure = &failure{podwriter.FailedCreate, errors.New("no room")} },
	} {
		t.Run(name, func(t *testing.T) {
			s, generation := s, int64(3)
			change(&s, &generation)
			if equality.Semantic.DeepEqual(newStatus(first, generation, s), first) {
				t.Error("the status stays as it was")
			}
		})
	}
}
