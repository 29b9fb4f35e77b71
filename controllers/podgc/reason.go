// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/nodestate"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// reason is why a Pod goes. None is the zero reason.
type reason string

const (
	none         reason = ""
	surplus      reason = "too many Pods have ended"
	orphaned     reason = "its node is gone"
	unscheduled  reason = "it is being deleted and bound to no node"
	outOfService reason = "it is being deleted and its node is out of service"
	halfway      reason = "its deletion has stopped halfway"
)

// view is what a Pod is judged by.
type view struct {
	surplus  bool         // it was chosen among those that have ended
	nodeGone bool         // its node is not there, and the server does not know it
	node     *corev1.Node // nil if it is not known
}

// judge decides whether a Pod is to be removed, and why.
func judge(pod *corev1.Pod, v view) reason {
	deleting := pod.DeletionTimestamp != nil
	switch {
	case settled(pod):
		return none
	case deletionStopped(pod):
		return halfway
	case v.surplus && podstate.Ended(pod):
		return surplus
	case deleting && pod.Spec.NodeName == "":
		return unscheduled
	case v.nodeGone && pod.Spec.NodeName != "" && v.node == nil:
		return orphaned
	case deleting && v.node != nil && isOutOfService(v.node):
		return outOfService
	}
	return none
}

// noGrace reports whether a Pod has been deleted with no grace period left.
func noGrace(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
}

// deleted reports whether a Pod is still there only because a finalizer holds it:
// deleting it again would add nothing.
func deleted(pod *corev1.Pod) bool { return noGrace(pod) && len(pod.Finalizers) > 0 }

// deletionStopped reports whether nothing holds a Pod that ought to be gone. The server
// deletes a Pod in two writes, of which the first takes its grace period away. A client
// that breaks its request off in between, as one that is killed does, stops the server
// there, and what is left has no grace period, no finalizer, and no client that deletes it.
// Source: k8s.io/apiserver/pkg/registry/generic/registry, Store.Delete. It was found by
// killing a process again and again.
func deletionStopped(pod *corev1.Pod) bool { return noGrace(pod) && len(pod.Finalizers) == 0 }

// settled reports whether nothing is left to be done for a Pod to go.
func settled(pod *corev1.Pod) bool { return podstate.Ended(pod) && deleted(pod) }

// isOutOfService reports whether a node has the taint out-of-service, and its kubelet
// does not report it ready.
func isOutOfService(node *corev1.Node) bool {
	return !nodestate.Ready(node) &&
		slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// reasonEvicted is the reason in the status of a Pod that a kubelet evicted.
// Source: k8s.io/kubernetes/pkg/kubelet/eviction, Reason.
const reasonEvicted = "Evicted"

func evicted(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == reasonEvicted
}

// choose returns which of the Pods that have ended go so that threshold of them stay:
// evicted ones first, since no owner counts on them, then the oldest. It sorts pods.
// Source: k8s.io/kubernetes/pkg/controller/podgc, byEvictionAndCreationTimestamp.
func choose(pods []*corev1.Pod, threshold int) []*corev1.Pod {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		if e := evicted(a); e != evicted(b) {
			if e {
				return -1
			}
			return 1
		}
		return cmp.Or(
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Namespace, b.Namespace),
		)
	})
	return pods[:max(0, len(pods)-threshold)]
}
