// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package parallel does work that is cut into numbered parts on several CPUs.
package parallel
