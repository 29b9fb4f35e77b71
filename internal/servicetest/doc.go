// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servicetest sets the scene for tests of the controllers of Services on a real
// server: a namespace with Services and Pods, on Nodes that are not simulated, so that
// only the test changes Pods.
//
// The cluster must have no simulated nodes.
package servicetest
