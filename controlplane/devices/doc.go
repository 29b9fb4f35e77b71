// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devices simulates a driver of dynamic resource allocation, so that Pods with
// ResourceClaims run without a device behind them.
//
// # Who does what
//
// Run creates a DeviceClass if there is none of its name, and publishes one ResourceSlice for each
// simulated Node: a pool of four devices. A slice belongs to its Node and is deleted with it. The
// slices are the whole of the driver's part. The scheduler chooses devices, a controller manager
// makes and frees claims, and package nodes starts a Pod when its claims are allocated and reserved
// for it.
//
// # Taints
//
// The annotation [TaintAnnotation] of a Node gives its devices taints. What a taint does is
// for the scheduler and for the controller that evicts Pods. A taint that cannot be read is
// ignored, and an Event of the Node with the reason InvalidSimulation names it.
//
// A cluster whose API server does not serve resource.k8s.io/v1 has no simulated devices.
package devices
