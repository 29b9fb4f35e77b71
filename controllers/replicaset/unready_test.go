// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// setReady gives a Pod on a node a condition of readiness.
func setReady(pod *corev1.Pod, ready corev1.ConditionStatus) {
	pod.Spec.NodeName, pod.Status.Phase = "node-1", corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()}}
}

// A Pod is chosen because it is not ready, and becomes ready before its delete arrives.
func TestAVictimThatBecomesReadyBeforeItsDeleteStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addSet(webSet(3))
		for name, ready := range map[string]corev1.ConditionStatus{"a": corev1.ConditionTrue, "b": corev1.ConditionTrue, "c": corev1.ConditionFalse} {
			pod := webPod(name)
			setReady(pod, ready)
			s.addPod(pod)
		}
		var swap sync.Once
		s.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" {
				swap.Do(func() {
					s.changePod(podKey("b"), func(pod *corev1.Pod) { setReady(pod, corev1.ConditionFalse) })
					s.changePod(podKey("c"), func(pod *corev1.Pod) { setReady(pod, corev1.ConditionTrue) })
				})
			}
			return nil
		})
		stop, _ := start(t, s, Defaults())
		settle()
		s.changeSet(web, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = new(int32(2)) })
		settle()
		var left []string
		for _, pod := range s.allPods() {
			if pod.DeletionTimestamp == nil {
				left = append(left, pod.Name)
			}
		}
		if len(left) != 2 || left[0] != "a" || left[1] != "c" {
			t.Errorf("the Pods %q are left, want a and c, which are ready", left)
		}
		if status := s.set(web).Status; status.Replicas != 2 || status.ReadyReplicas != 2 {
			t.Errorf("the status is %+v, want 2 replicas, both ready", status)
		}
		stop()
	})
}

// A ReplicaSet that wants no Pods deletes all of them, in whichever state they are.
func TestAScaleToZeroDeletesPodsThatBecomeReadyMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addSet(webSet(1))
		pod := webPod("a")
		setReady(pod, corev1.ConditionFalse)
		s.addPod(pod)
		var once sync.Once
		s.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "delete" {
				once.Do(func() { s.changePod(podKey("a"), func(pod *corev1.Pod) { setReady(pod, corev1.ConditionTrue) }) })
			}
			return nil
		})
		stop, _ := start(t, s, Defaults())
		settle()
		s.changeSet(web, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = new(int32(0)) })
		settle()
		if n := len(s.asked(s.pods, "delete")); n != 1 {
			t.Errorf("there were %d deletes, want 1", n)
		}
		stop()
	})
}

// Two of four Pods go: one that is not ready, which does not count, and the youngest ready one.
func TestTheAgesOfReadyVictimsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addSet(webSet(4))
		for i, name := range []string{"oldest", "older", "youngest"} {
			pod := webPod(name)
			pod.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(i-4) * time.Hour))
			setReady(pod, corev1.ConditionTrue)
			s.addPod(pod)
		}
		unready := webPod("unready")
		setReady(unready, corev1.ConditionFalse)
		s.addPod(unready)
		var metrics prometheus.Collector
		p := managertest.Run(t, &rest.Config{Host: "http://server", Transport: s.Server}, managertest.MakingMetrics(New, Defaults(), &metrics))
		settle()
		s.changeSet(web, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = new(int32(2)) })
		settle()
		const name = "replicaset_controller_sorting_deletion_age_ratio"
		if n := managertest.Series(t, metrics)[name]; n != 1 {
			t.Errorf("%v Pods are measured, want the ready one of the two that were deleted", n)
		}
		s.changeSet(web, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = new(int32(0)) })
		settle()
		if n := managertest.Series(t, metrics)[name]; n != 1 {
			t.Errorf("%v Pods are measured; Pods of which all are deleted are not chosen", n)
		}
		p.Stop()
	})
}
