// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disruption counts the Pods that PodDisruptionBudgets protect.
//
//	kubectl drain ─▶ eviction ─▶ API server: disruptionsAllowed > 0 ?
//	                               │ yes: one less, and the Pod is noted in disruptedPods
//	                               ▼
//	                             delete ─▶ Pod ─▶ this controller: counts again
//
// The API server decides about each eviction, with the status of the budget that selects the Pod.
// This controller writes that status: how many Pods there should be, how many must stay healthy,
// how many are healthy, and so how many more may be evicted.
//
// # What it watches and writes
//
// It watches budgets, Pods, and the Deployments, ReplicaSets, ReplicationControllers and
// StatefulSets that Pods belong to. It reads the scale of other controllers of Pods from the
// server, whenever it counts, and every half minute. It writes the status of budgets, and the
// condition DisruptionTarget of Pods.
//
// # What holds
//
//   - A Pod is healthy if it is ready and is not being deleted. A Pod whose eviction the API server
//     has allowed is not healthy, from that moment until its deletion is seen, or for two minutes.
//   - The status is written over the state that it was computed from, and no other: an eviction
//     that comes between is a conflict, and the numbers are computed anew.
//   - A budget whose numbers cannot be computed allows no eviction. Its condition DisruptionAllowed
//     has the reason SyncFailed and says why. The controller tries again, with growing delay.
//   - A Pod that several budgets select cannot be evicted. An Event on the Pod names them.
//   - A Pod that has the condition DisruptionTarget for two minutes and is not being deleted loses
//     it.
//
// # What it costs
//
// The index of selectors finds the budgets of a Pod. A change of a Pod that no budget selects, or
// that changes neither its readiness nor its labels, costs no run.
//
// A status on which an eviction depends is written at once. While a budget has fewer healthy Pods
// than it wants, their number alone is written every tenth of a second at most: see pause.go.
//
// # What differs from kube-controller-manager
//
// Behaviour, reasons and numbers are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/disruption), with these differences:
//
//   - It enqueues one budget of a Pod and none of those that selected the Pod before.
//   - It does not notice a new size of an owner before the Pods change. Here, that of a kind which is
//     watched counts at once, and that of another kind within half a minute (see scalePeriod in budget.go).
//   - It leaves a budget whose computation failed at 0 until something changes.
//   - Its Event NotDeleted has the namespace in the place of the budget's name.
package disruption
