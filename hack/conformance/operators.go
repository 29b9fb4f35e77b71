// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// operator is an operator on controller-runtime. Its tests run twice, with the same versions of
// all modules: with the cache of controller-runtime, and with NewCache of the adapters.
type operator struct {
	suite
	nested map[string]string // modules that the module has in folders: path@version, by folder
	lines  []line            // that put NewCache in the place of the other
}

// line is a change of one line.
type line struct {
	file         string
	theirs, ours string
}

// operators are run in this order. A line is where the operator, or the program that runs its
// controllers in tests, makes a cache.
var operators = []operator{
	{
		suite: suite{
			name:     "trust-manager",
			module:   "github.com/cert-manager/trust-manager@v0.25.0",
			packages: []string{"./cmd/...", "./pkg/...", "./test/integration/..."},
		},
		lines: []line{
			{"cmd/trust-manager/app/app.go", "ctrl.Options{", "ctrl.Options{NewCache: setpoint.NewCache,"},
			{"pkg/bundle/controller.go", "cache.New(", "setpoint.NewCache("},
			{"test/integration/bundle/env.go", "ctrl.Options{", "ctrl.Options{NewCache: setpoint.NewCache,"},
			{"test/integration/clusterbundle/env.go", "ctrl.Options{", "ctrl.Options{NewCache: setpoint.NewCache,"},
		},
	},
	{
		suite: suite{
			name:   "cluster-api",
			module: "sigs.k8s.io/cluster-api@v1.14.2",
			// The core controllers, and the caches of workload clusters.
			packages: []string{"./core/reconcilers/...", "./controllers/..."},
		},
		nested: map[string]string{"api": "sigs.k8s.io/cluster-api/api@v1.14.2"},
		lines: []line{
			{"core/main.go", "ctrl.Options{", "ctrl.Options{NewCache: setpoint.NewCache,"},
			{"core/reconcilers/clusterresourceset/suite_test.go", "ctrlcache.New(", "setpoint.NewCache("},
			{"controllers/clustercache/cluster_accessor_client.go", "ctrlcache.New(", "setpoint.NewCache("},
			{"controllers/crdmigrator/crd_migrator_test.go", "manager.Options{", "manager.Options{NewCache: setpoint.NewCache,"},
			{"internal/test/envtest/environment.go", "manager.Options{", "manager.Options{NewCache: setpoint.NewCache,"},
		},
	},
}
