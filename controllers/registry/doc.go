// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry lists the built-in controllers by their names, and chooses among
// them as kube-controller-manager's flag --controllers does.
//
// It is the one place that knows them all. A controller knows none of the others.
package registry
