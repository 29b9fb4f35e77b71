// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package horizontalpodautoscaler scales workloads by their metrics.
//
//	metrics API ─▶ reading ─▶ proposal ─┐ the largest
//	metrics API ─▶ reading ─▶ proposal ─┴─▶ recommendation ─▶ windows ─▶ policies, bounds ─▶ size
//	                 Pods ────────┘                             ▲            ▲
//	                                                            └─ history ──┘
//
// Every 15 seconds, and when its spec changes, a HorizontalPodAutoscaler is reconciled: the controller
// reads the scale of the target and the metrics, decides, and writes the new size and the status. The
// decision is a function of what was read (plan.go): it has no clock and no client.
//
// # What it watches, reads and writes
//
// It watches HorizontalPodAutoscalers and Pods. It reads metrics.k8s.io, custom.metrics.k8s.io and
// external.metrics.k8s.io, and the subresource scale of the targets, which it also writes. It writes
// the status of HorizontalPodAutoscalers, with an annotation.
//
// # The order of a decision
//
//  1. A target without replicas stays so, unless this controller removed them (ScaledToZero).
//  2. A size outside of minReplicas and maxReplicas becomes the nearer one of them. The metrics
//     are not read.
//  3. Each metric proposes a size (proposal.go). Pods that are not ready or have no metric count so
//     that the change becomes smaller (pods.go, replicas.go). The largest proposal is the
//     recommendation. If a metric is not known, the size does not become smaller.
//  4. The stabilization windows take older recommendations into account, and the policies what was
//     changed within their periods (size.go, rules.go, history.go).
//
// # What holds
//
//   - The windows and the periods of the policies survive a restart, and a change of leader: they are
//     in the annotation setpoint.io/scaling-history, which is written in one request with the status
//     (windows.go). kube-controller-manager leaves the annotation as it is. Its changes of
//     the size are found in status.lastScaleTime and status.desiredReplicas.
//   - A change of the size whose status was not written, because the controller was killed between
//     the two writes, counts: the new process finds another size than the one in the annotation.
//   - A size that another client changes while it is decided about is not overwritten: the decision is
//     made again.
//   - Before the last replicas are removed, the condition ScaledToZero is written. So a target at zero
//     comes back, whenever the controller was killed.
//   - Pods that the selector of a target selects and that are not the target's count, unless the
//     annotation [ForeignPodsAnnotation] says that they do not (foreign.go). The condition ScalingActive
//     names their owners in both cases.
//   - A value that is no number, a target that is no scale and a selector that cannot be read change
//     no size. They are in the conditions and in an Event, and cost the requests of one period. A value
//     below 0 asks for the fewest replicas, and the condition says so.
//   - A metrics API that does not answer holds a worker for [Patience] at most. From then on it holds
//     one worker, whatever number of HorizontalPodAutoscalers need it, until it answers (silence.go).
//
// # What differs from kube-controller-manager
//
// Behaviour, names, reasons and texts are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/podautoscaler), with these differences:
//
//   - It forgets the windows and the periods when it restarts, and a target at zero if it is killed at
//     the wrong moment.
//   - It takes the condition ScaledToZero back only when it scales the target itself. There, a target at
//     zero that a user gives replicas, and later none, gets replicas again. Here it stays at zero: a size
//     of 0 that a user gives turns the scaling off.
//   - Its conditions do not name the Pods that were counted, and Pods of others always count.
//   - Pods that have succeeded count there, and Pods that do not count must have requests.
//   - Metrics of Pods that are not the target's count there. A value that cannot be read is an error
//     of all Pods there; here its Pod counts as one without a metric.
//   - Of two HorizontalPodAutoscalers for the same Pods, the first one scales once after a restart.
package horizontalpodautoscaler
