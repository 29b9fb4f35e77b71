// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodefit says why a Node does not fit a Pod: which rules of the scheduler the Node fails, with the figures of each.
//
//	result := nodefit.Check(pod, nodefit.Node{Node: node, Pods: podsOfTheNode})
//	for _, f := range result.Fails {
//		fmt.Println(f.Rule, f.Text)
//	}
//
// The message of the scheduler only counts: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable". For each Node it
// counts the first rule that the Node fails. [Check] names all of them, in the scheduler's order, so that a user who mends the first one
// is not surprised by the second. [Compare] holds the message against the rules that the Nodes fail by their present state.
//
// The rules are those that need only the Pod, the Node, the Pods of the Node and its volumes: unschedulable Nodes, taints, node
// affinity, host ports, resources and the number of Pods, and the affinity of bound volumes. Rules about the whole cluster are not checked:
// spread, affinity to other Pods, devices, and limits of volumes. The package reads nothing, and decides from what it is given.
package nodefit
