// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// suite is some tests of a module.
type suite struct {
	name     string
	module   string // path@version
	packages []string
}

// suites are run in this order.
var suites = []suite{
	{
		// How envtest starts and stops the servers, and what it expects of their flags.
		name:     "envtest",
		module:   "sigs.k8s.io/controller-runtime@v0.25.2",
		packages: []string{"./pkg/envtest/...", "./pkg/internal/testing/..."},
	},
	{
		// An operator whose tests use envtest. Its smoke test needs a cluster with cert-manager.
		name:     "trust-manager",
		module:   "github.com/cert-manager/trust-manager@v0.25.0",
		packages: []string{"./cmd/...", "./pkg/...", "./test/integration/..."},
	},
}
