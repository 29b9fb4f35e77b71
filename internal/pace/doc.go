// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pace leaves a pause between two writes of the same object.
//
// A controller whose object sums up many others is woken by each of them: a PodDisruptionBudget by its Pods, the
// status of a Node by its volumes. If it writes each time, most of its writes are replaced within milliseconds, and
// the API server has less time for everything else. With a [Pace] the first change is written at once. Those that
// follow within the pause are written together, at its end.
//
// The reconciler asks [Pace.Left] before it writes, and asks the loop for another run when the rest of the pause is over.
package pace
