// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podindex

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// ByNode has [OnNode] and [Nodes] work on the snapshots of an informer. Where it has
// been called before it does nothing. It reads the one field: a decode of each Pod that
// changes would cost ten times as much.
func ByNode(pods cache.SharedInformer[*corev1.Pod]) { pods.IndexText(wire.NodeName) }

// OnNode returns the Pods that are bound to a node.
func OnNode(pods cache.Snapshot[*corev1.Pod], node string) iter.Seq2[object.Key, cache.Item[*corev1.Pod]] {
	return pods.WithText(wire.NodeName, node)
}

// Nodes returns the names that Pods are bound to, of nodes that there are and others,
// and how many Pods each.
func Nodes(pods cache.Snapshot[*corev1.Pod]) iter.Seq2[string, int] {
	return pods.TextValues(wire.NodeName)
}
