// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"fmt"
	"slices"
)

// Operator is an operator on controller-runtime.
type Operator struct {
	Name   string
	Module string // path@version

	// Nested are modules that the module has in folders: path@version, by folder.
	Nested map[string]string

	// Tests are the packages whose tests run, as arguments of go test.
	Tests []string

	// Lines put NewCache in the place of controller-runtime's cache, wherever the operator, or a program
	// that runs its controllers in tests, makes a cache.
	Lines []Line
}

// Line is a change of one line of a file.
type Line struct{ File, Theirs, Ours string }

const (
	options   = "ctrl.Options{"
	managers  = "manager.Options{"
	plain     = "NewCache: setpoint.NewCache,"
	replacing = "NewCache: setpoint.NewCacheWith(setpoint.IgnoreNewInformer()),"
)

// List are the operators, in the order in which they are tested.
var List = []Operator{
	{
		Name:   "trust-manager",
		Module: "github.com/cert-manager/trust-manager@v0.25.0",
		// The smoke test needs a cluster with cert-manager.
		Tests: []string{"./cmd/...", "./pkg/...", "./test/integration/..."},
		Lines: []Line{
			{"cmd/trust-manager/app/app.go", options, options + plain},
			{"pkg/bundle/controller.go", "cache.New(", "setpoint.NewCache("},
			{"test/integration/bundle/env.go", options, options + plain},
			{"test/integration/clusterbundle/env.go", options, options + plain},
		},
	},
	{
		Name:   "cluster-api",
		Module: "sigs.k8s.io/cluster-api@v1.14.2",
		Nested: map[string]string{"api": "sigs.k8s.io/cluster-api/api@v1.14.2"},
		// All packages whose tests start a server with envtest.
		Tests: []string{
			"./core/reconcilers/machineset", "./core/reconcilers/machinedeployment", "./core/reconcilers/machine",
			"./core/reconcilers/cluster", "./core/reconcilers/clusterclass", "./core/reconcilers/clusterresourceset",
			"./core/reconcilers/extensionconfig", "./core/reconcilers/machinehealthcheck", "./core/reconcilers/machinepool",
			"./core/reconcilers/topology/cluster", "./core/reconcilers/topology/cluster/structuredmerge",
			"./core/webhooks/admission/test",
			"./controllers/clustercache", "./controllers/crdmigrator",
			"./bootstrap/kubeadm/reconcilers/kubeadmconfig",
			"./controlplane/kubeadm/reconcilers/kubeadmcontrolplane", "./controlplane/kubeadm/pkg",
			"./internal/topology/upgrade", "./internal/util/ssa/test", "./internal/test/envtest/example",
			"./util/controller", "./util/patch/test", "./util/deprecated/v1beta1/patch",
		},
		// The options of its managers have NewInformer, for metrics of client-go's informers.
		Lines: []Line{
			{"core/main.go", options, options + replacing},
			{"core/main.go", "ctrlcache.New(", "setpoint.NewCache("},
			{"bootstrap/kubeadm/main.go", options, options + replacing},
			{"controlplane/kubeadm/main.go", options, options + replacing},
			{"core/reconcilers/clusterresourceset/suite_test.go", "ctrlcache.New(", "setpoint.NewCache("},
			{"controllers/clustercache/cluster_accessor_client.go", "ctrlcache.New(", "setpoint.NewCache("},
			{"controllers/crdmigrator/crd_migrator_test.go", managers, managers + replacing},
			{"internal/test/envtest/environment.go", managers, managers + replacing},
		},
	},
}

// Named returns the operator with a name.
func Named(name string) (Operator, error) {
	if i := slices.IndexFunc(List, func(o Operator) bool { return o.Name == name }); i >= 0 {
		return List[i], nil
	}
	return Operator{}, fmt.Errorf("there is no operator %q in the list of package internal/operators", name)
}
