// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stray stands in no row of the table.
package stray
