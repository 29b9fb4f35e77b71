// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The status says that all is well, so the first run reads the Pods without their specs. There is one too many, and which of them goes
// depends on the nodes, which are in the specs: the one alone on its node stays, though it is the youngest.
func TestASettledReplicaSetDeletesASurplusPodByItsNode(t *testing.T) {
	run(t, func(s *server) {
		set := webSet(2)
		set.Generation = 1
		set.Status = appsv1.ReplicaSetStatus{ObservedGeneration: 1, Replicas: 2, FullyLabeledReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
		s.addSet(set)
		for name, at := range map[string]struct {
			node string
			age  time.Duration
		}{"a": {"node-1", 100 * time.Hour}, "b": {"node-1", 20 * time.Hour}, "c": {"node-2", time.Hour}} {
			pod := webPod(name)
			setReady(pod, corev1.ConditionTrue)
			pod.Spec.NodeName = at.node
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Now().Add(-at.age))
			s.addPod(pod)
		}
	}, func(t *testing.T, s *server) {
		var left []string
		for _, pod := range s.allPods() {
			if pod.DeletionTimestamp == nil {
				left = append(left, pod.Name)
			}
		}
		if len(left) != 2 || left[0] != "a" || left[1] != "c" {
			t.Errorf("the Pods %q are left, want a and c", left)
		}
	})
}
