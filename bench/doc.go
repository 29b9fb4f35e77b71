// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Bench measures Setpoint beside its peers, on real parts, in one run.
//
//	go run . manager
//
// Each measure is one line:
//
//	name setpoint=… peer=… ratio=… aim=… ok|short
//
// ratio is Setpoint's figure over the peer's. Candidates take turns, each on a
// fresh control plane, so that a machine whose speed drifts treats all alike; the
// figures are medians over the turns, and the spread is printed with -v. A measure
// that misses its aim says "short"; it is no failure of the command.
//
// The module stands outside of the workspace: the peers' versions are its own.
package main
