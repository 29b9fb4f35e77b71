// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	corev1 "k8s.io/api/core/v1"
)

// Pods returns the Pods of a namespace, of all namespaces if it is "", whose Nodes
// answer. It is for package metrics.
func (s *store) Pods(namespace string) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := map[string]bool{}
	for name, node := range s.nodes {
		quiet, _ := silent(node.object)
		answers[name] = !quiet
	}
	var pods []*corev1.Pod
	for name, state := range s.pods {
		if (namespace == "" || namespace == name.Namespace) && answers[state.object.Spec.NodeName] {
			pods = append(pods, state.object)
		}
	}
	return pods
}

// Nodes returns the Nodes that answer. It is for package metrics.
func (s *store) Nodes() []*corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	var nodes []*corev1.Node
	for _, state := range s.nodes {
		if quiet, _ := silent(state.object); !quiet {
			nodes = append(nodes, state.object)
		}
	}
	return nodes
}
