// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loopback serves HTTPS on 127.0.0.1, on a port that the kernel chooses, until a
// context ends. The servers behind the API server use it: that of the simulated kubelets
// and that of their metrics.
package loopback
