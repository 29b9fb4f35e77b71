// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Setpoint-generate is "setpoint generate": it writes what follows from the types of an API and
// from the markers beside them. Package generate has the details.
package main
