// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Users and tools read these words.
// Source: k8s.io/kubernetes/pkg/controller/nodelifecycle, tryUpdateNodeHealth.
func TestTheConditionsOfASilentNodeAreInUpstreamsWords(t *testing.T) {
	made, beat, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0)), time.Unix(3000, 0)
	node := nodeWith("a", corev1.ConditionTrue)
	node.CreationTimestamp = made
	node.Status.Conditions[0].LastHeartbeatTime = beat
	setCondition(node, corev1.NodeMemoryPressure, corev1.ConditionUnknown) // says so already
	setCondition(node, corev1.NodeNetworkUnavailable, corev1.ConditionFalse)

	type said struct {
		reason, message string
		heartbeat       metav1.Time
	}
	want := map[corev1.NodeConditionType]said{
		corev1.NodeReady:        {"NodeStatusUnknown", "Kubelet stopped posting node status.", beat},
		corev1.NodeDiskPressure: {"NodeStatusNeverUpdated", "Kubelet never posted node status.", made},
		corev1.NodePIDPressure:  {"NodeStatusNeverUpdated", "Kubelet never posted node status.", made},
	}
	turned := conditionsToTurn(node, now)
	if len(turned) != len(want) {
		t.Errorf("%d conditions are turned, want %d: %+v", len(turned), len(want), turned)
	}
	for _, c := range turned {
		if have := (said{c.Reason, c.Message, c.LastHeartbeatTime}); have != want[c.Type] || c.Status != corev1.ConditionUnknown || !c.LastTransitionTime.Time.Equal(now) {
			t.Errorf("%+v, want Unknown since %s, with %+v", c, now, want[c.Type])
		}
	}
}
