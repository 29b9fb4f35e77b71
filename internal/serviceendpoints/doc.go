// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serviceendpoints says which Pods stand behind a Service, and as what: what
// the controllers of EndpointSlices and of Endpoints have in common.
//
// # Who belongs to whom
//
// [Selection] finds the Pods that a Service selects, and the Services that select a
// Pod, by indexes of the informers. Neither costs more because of Services or Pods
// of the namespace that have nothing to do with each other.
//
// A Service stands in a tree of selectors: under each beginning of its selector, the
// pairs of which are in the order of their keys, and under the whole of it.
//
//	app=shop,                    ─▶ there is more below
//	app=shop,component=cart;     ─▶ Service cart
//	app=shop,component=till;     ─▶ Service till
//
// To find the Services that select a Pod, the tree is walked along the Pod's labels:
// from each place that exists, one step for each of the labels that follow in order.
// What is at the end of the walk matches. No selector is looked at that does not.
//
// A Pod stands in an index under each pair of its labels. The Pods of a selector are
// looked for among those of its rarest pair.
//
// # What of a Pod matters
//
// [Selection.Wakes] maps a change of a Pod to the keys of Services. It asks first who
// selects the Pod, by its labels alone, and decodes it only if somebody does. Then it
// leaves out what no endpoint shows: a Pod that waits for an address, a container
// that restarts, an annotation.
//
// # When it began
//
// [Triggers] finds the time of the change that a write is the answer to, for the
// annotation endpoints.kubernetes.io/last-change-trigger-time, by which others measure
// how long the network takes to follow.
package serviceendpoints
