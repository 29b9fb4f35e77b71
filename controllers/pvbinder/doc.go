// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pvbinder binds.
package pvbinder
