// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs starts the programs that serve the page, each on a terminal of its own, and reads the addresses that they
// print: "setpoint up", "setpoint manager" and "setpoint ui".
package programs
