// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package horizontalpodautoscaler scales workloads by their metrics.
package horizontalpodautoscaler
