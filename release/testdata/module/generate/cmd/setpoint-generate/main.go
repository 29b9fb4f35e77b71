// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint-generate stands in for the real program in tests.
package main

func main() {}
