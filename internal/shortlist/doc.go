// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shortlist names some of many objects in one sentence and counts the rest.
//
// Events, conditions and the reasons of runs name objects: the Pods that a budget counts,
// the nodes that a rollout waits for. A cluster has thousands of them, and a reader needs
// a few examples and the number.
package shortlist
