// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podindex

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// byNode is the index.
const byNode = "podindex/node"

// ByNode has [OnNode] and [Nodes] work on the snapshots of an informer. Where it has
// been called before it does nothing.
func ByNode(pods cache.SharedInformer[*corev1.Pod]) {
	// The error is that there is this index.
	_ = pods.AddIndex(byNode, func(item cache.Item[*corev1.Pod]) ([]string, error) {
		pod, err := item.Object()
		if err != nil || pod.Spec.NodeName == "" {
			return nil, err
		}
		return []string{pod.Spec.NodeName}, nil
	})
}

// OnNode returns the Pods that are bound to a node.
func OnNode(pods cache.Snapshot[*corev1.Pod], node string) iter.Seq2[object.Key, cache.Item[*corev1.Pod]] {
	return pods.Index(byNode, node)
}

// Nodes returns the names that Pods are bound to, of nodes that there are and others,
// and how many Pods each.
func Nodes(pods cache.Snapshot[*corev1.Pod]) iter.Seq2[string, int] {
	return pods.IndexValues(byNode)
}
