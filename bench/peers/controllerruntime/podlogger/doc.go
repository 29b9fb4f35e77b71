// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Podlogger is examples/podlogger on controller-runtime, for its length: the same work, in the way
// that its own examples show.
package main
