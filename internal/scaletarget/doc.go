// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaletarget reads and writes the scale of an object that a reference names: how many
// replicas it wants, how many it has, and which Pods they are. Any kind may have the subresource
// scale, custom kinds too.
//
// Two controllers need it: the one of PodDisruptionBudgets for the controllers of Pods, and the
// one of HorizontalPodAutoscalers for what they scale.
package scaletarget
