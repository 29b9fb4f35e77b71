// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
)

// Options are what all controllers have in common. The zero value is upstream's
// choice for each.
type Options struct {
	// Workers is how many keys each controller works on at a time. 0 is each
	// one's default.
	Workers int
}

// Entry is a controller that can be run.
type Entry struct {
	Name    string // as upstream calls it, such as "deployment-controller"
	Alias   string // short for Name, such as "deployment"
	Summary string // what it does, in a few words

	// Rights returns what the controller must be allowed to do, and nothing more.
	// nil for one that has not declared it.
	Rights func() []rbacv1.PolicyRule

	// New makes the controller, with its informers and events from h. It does
	// not start it.
	New func(h controller.Host, o Options) (controller.Runnable, error)
}

// Known returns all built-in controllers in the order of their names. The caller
// owns the result.
func Known() []Entry {
	all := []Entry{
		{
			Name: deployment.Name, Alias: "deployment",
			Summary: "rolls Deployments out and back, by way of ReplicaSets",
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return deployment.New(h, deployment.Options{Workers: o.Workers})
			},
		},
		{
			Name: nodelifecycle.Name, Alias: "nodelifecycle",
			Summary: "tells which Nodes are alive, and taints those that are not",
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return nodelifecycle.New(h, nodelifecycle.Options{Workers: o.Workers})
			},
		},
		{
			Name: replicaset.Name, Alias: "replicaset",
			Summary: "keeps as many Pods as each ReplicaSet wants",
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return replicaset.New(h, replicaset.Options{Workers: o.Workers})
			},
		},
		{
			Name: serviceaccount.Name, Alias: "serviceaccount",
			Summary: "makes the ServiceAccount default in every Namespace",
			New: func(h controller.Host, o Options) (controller.Runnable, error) {
				return serviceaccount.New(h, serviceaccount.Options{Workers: o.Workers})
			},
		},
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all
}
