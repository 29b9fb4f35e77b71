// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstate says where a Pod is in its life, as the controllers understand it.
package podstate
