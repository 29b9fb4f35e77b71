// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicationcontroller

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func newRC(replicas int32) *corev1.ReplicationController {
	selector := map[string]string{"app": "web"}
	return &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ReplicationControllerSpec{
			Replicas: &replicas, Selector: selector, MinReadySeconds: 7,
			Template: &corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
			},
		},
	}
}

func TestWhatAReplicationControllerAsksFor(t *testing.T) {
	rc := newRC(3)
	d, err := demand(rc)
	if err != nil {
		t.Fatal(err)
	}
	if d.Replicas != 3 || d.MinReady != 7*time.Second || d.Template != rc.Spec.Template {
		t.Errorf("it asks for %+v", d)
	}
	if !d.Selector.Matches(labels.Set{"app": "web", "more": "yes"}) || d.Selector.Matches(labels.Set{"app": "api"}) {
		t.Errorf("it selects by %s", d.Selector)
	}
	rc.Spec.Replicas = nil
	if d, err := demand(rc); err != nil || d.Replicas != 1 {
		t.Errorf("without a number it asks for %d Pods (%v), want 1", d.Replicas, err)
	}
}

func TestAReplicationControllerThatWouldTakeEveryPodGetsNone(t *testing.T) {
	rc := newRC(1)
	rc.Spec.Selector = nil
	if _, err := demand(rc); err == nil || !strings.Contains(err.Error(), "selects by no label") {
		t.Errorf("no selector: %v", err)
	}
	rc = newRC(1)
	rc.Spec.Template = nil
	if _, err := demand(rc); err == nil || !strings.Contains(err.Error(), "no template") {
		t.Errorf("no template: %v", err)
	}
}

func TestAStatusIsTheSameInBothForms(t *testing.T) {
	before := newRC(3)
	before.Status = corev1.ReplicationControllerStatus{
		Replicas: 5, FullyLabeledReplicas: 4, ReadyReplicas: 3, AvailableReplicas: 2, ObservedGeneration: 9,
		Conditions: []corev1.ReplicationControllerCondition{{
			Type: corev1.ReplicationControllerReplicaFailure, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.Unix(1000, 0), Reason: "FailedCreate", Message: "no room",
		}},
	}
	there := status(before)
	if there.Conditions[0].Type != appsv1.ReplicaSetReplicaFailure {
		t.Errorf("the condition is called %s", there.Conditions[0].Type)
	}
	if again := withStatus(newRC(3), there); !equality.Semantic.DeepEqual(again, before) {
		t.Errorf("there and back it is %+v, was %+v", again.Status, before.Status)
	}
	there.TerminatingReplicas = new(int32(1))
	if again := withStatus(before, there); !equality.Semantic.DeepEqual(again, before) {
		t.Error("Pods that terminate change the status, which has no place for them")
	}
}
