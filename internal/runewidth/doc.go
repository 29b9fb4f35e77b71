// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runewidth says how many columns of a terminal a character takes: what writes to a
// terminal and what draws one must agree on it.
package runewidth
