// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceendpoints finds the Pods behind a Service, and their endpoints. It is
// what the controllers of EndpointSlices and of Endpoints have in common.
//
// # Which Pods belong to which Services
//
// [Selection] finds the Pods that a Service selects, and the Services that select a
// Pod, with the indexes of package controller/selectors. Neither costs more because of
// Services or Pods of the namespace that have nothing to do with each other.
//
// # What of a Pod matters
//
// [Selection.Wakes] maps a change of a Pod to the keys of Services. It first looks up the
// Services that select the Pod, by its labels alone, and decodes the Pod only if there is
// one. Then it leaves out what no endpoint shows: a Pod that waits for an address, a
// container that restarts, an annotation.
//
// # When it began
//
// [Triggers] finds the time of the change that a write is the answer to, for the
// annotation endpoints.kubernetes.io/last-change-trigger-time, by which others measure
// how long the network takes to follow.
package serviceendpoints
