// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manage is "setpoint manager" and "setpoint manager rbac": the built-in controllers
// as a process that takes the place of kube-controller-manager, with its flags.
//
// The flags of single controllers are theirs (package controllers). Each file here has one
// group of the others: the values, the flags that set them, and what becomes of them. The
// command ([Command]) takes from each group in turn its part of the manager, and runs
// that. "setpoint up" runs a manager without flags ([New]).
package manage
