// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import appsv1 "k8s.io/api/apps/v1"

// Reasons of Events. Those of creates and deletes are in package podwriter.
// Source: k8s.io/kubernetes/pkg/controller/daemon.
const (
	reasonFailed       = "FailedDaemonPod"
	reasonSucceeded    = "SucceededDaemonPod"
	reasonSelectingAll = "SelectingAll"
)

// reconciling is the action of these Events.
const reconciling = "Reconcile"

// announce reports the Pods that are deleted because they have ended.
func (r *reconciler) announce(set *appsv1.DaemonSet, removals []removal) {
	for _, one := range removals {
		pod := one.pod
		switch one.why {
		case failed:
			r.recorder.Warning(set, reasonFailed, reconciling, "Found failed daemon pod %s/%s on node %s, will try to kill it", pod.namespace, pod.name, pod.node)
		case succeeded:
			r.recorder.Normal(set, reasonSucceeded, reconciling, "Found succeeded daemon pod %s/%s on node %s, will try to delete it", pod.namespace, pod.name, pod.node)
		case surplus, outdated, broken:
		}
	}
}
