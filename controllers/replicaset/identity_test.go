// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The conflict that a status meets may be with another ReplicaSet, made after the end of
// the one that the status is about. Its informer has not shown that yet.
func TestAStatusDoesNotGoOntoAnotherReplicaSetOfTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addSet(webSet(1))
		s.addPod(webPod("a"))
		start(t, s, Defaults())
		settle()
		s.LagWatches(func() time.Duration { return 5 * time.Second })
		s.changeSet(web, func(set *appsv1.ReplicaSet) { set.UID, set.Status = "of-another", appsv1.ReplicaSetStatus{} })
		s.LagWatches(nil)
		before := len(s.statusWrites())
		s.changePod(podKey("a"), func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		})
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(s.statusWrites()) - before; n != 1 {
			t.Errorf("%d writes of the status, want the one that is a conflict", n)
		}
		if status := s.set(web).Status; status.Replicas != 0 || status.ReadyReplicas != 0 {
			t.Errorf("the status of the other one is %v", status)
		}
	})
}

func TestAPodThatEndsAndMatchesNoLongerIsNotOfThoseThatTerminate(t *testing.T) {
	run(t, func(s *server) {
		s.addSet(webSet(1))
		s.addPod(webPod("a"))
		going, other := webPod("going"), webPod("other")
		going.DeletionTimestamp, other.DeletionTimestamp = new(metav1.Now()), new(metav1.Now())
		other.Labels = map[string]string{"app": "quarantine"}
		s.addPod(going)
		s.addPod(other)
	}, func(t *testing.T, s *server) {
		if n := s.set(web).Status.TerminatingReplicas; n == nil || *n != 1 {
			t.Errorf("terminatingReplicas is %v, want the 1 that matches", n)
		}
	})
}
