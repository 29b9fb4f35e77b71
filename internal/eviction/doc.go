// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eviction is how controllers delete a Pod that runs: they first say why in its condition
// DisruptionTarget, which the controllers of workloads and users read, and then delete it.
package eviction
