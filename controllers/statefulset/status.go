// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// count counts Pods into a status that has its revisions. gone are the Pods that the run has
// deleted. They count as Pods until they are gone, and as Pods of no revision.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, computeReplicaStatus.
func count(s *appsv1.StatefulSetStatus, set *appsv1.StatefulSet, pods []*corev1.Pod, gone map[types.UID]bool, now time.Time) {
	for _, pod := range pods {
		s.Replicas++
		if runningAndReady(pod) {
			s.ReadyReplicas++
			if available(set, pod, now) {
				s.AvailableReplicas++
			}
		}
		if terminating(pod) || gone[pod.UID] {
			continue
		}
		if revisionOf(pod) == s.CurrentRevision {
			s.CurrentReplicas++
		}
		if revisionOf(pod) == s.UpdateRevision {
			s.UpdatedReplicas++
		}
	}
}

// complete ends a rollout when all Pods are of the new revision and ready.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, completeUpdate.
func complete(s *appsv1.StatefulSetStatus, set *appsv1.StatefulSet, now time.Time) {
	if n := int32(size(set)); s.UpdatedReplicas != n || s.ReadyReplicas != n || s.Replicas != n {
		return
	}
	s.CurrentReplicas, s.CurrentRevision = s.UpdatedReplicas, s.UpdateRevision
	if set.Spec.UpdateStrategy.Type != appsv1.RecreateStatefulSetStrategyType {
		return
	}
	for _, c := range s.Conditions {
		if c.Type == appsv1.StatefulSetProgressing {
			setCondition(s, corev1.ConditionFalse, recreateCompleted, "All pods recreated successfully", now)
		}
	}
}
