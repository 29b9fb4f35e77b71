// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodestate reads the conditions of Nodes, as the controllers understand them.
package nodestate
