// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drivers starts the simulated drivers: storage and devices. A driver is a few objects
// that it creates at its start ([Ensure]), and controllers that run until a context ends
// ([Driver.Play]). Its options, defaults and its client are the same for each driver. What a driver says about each
// simulated Node, in a CSINode or a ResourceSlice, is kept by a [PerNode].
package drivers
