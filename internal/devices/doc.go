// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package devices has what the controllers of dynamic resource allocation share: which
// ResourceClaims a Pod uses, which devices a claim has, and which taints the devices have.
//
// The rules are those of k8s.io/dynamic-resource-allocation/resourceclaim, a module that needs
// k8s.io/apiserver and is therefore not a dependency. They are written again from the behaviour.
package devices
