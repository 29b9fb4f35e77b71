// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaostest makes the informers of package cache a candidate of a
// fakechaos campaign: with handlers of many sorts, readers of snapshots beside
// them, and a check that nothing is left once they were stopped.
package chaostest
