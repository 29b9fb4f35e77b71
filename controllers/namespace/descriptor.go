// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Sources: k8s.io/kubernetes/pkg/controller/namespace/config/v1alpha1, and
// namespaceDeletionGracePeriod in pkg/controller/namespace. Upstream has no Kinds: 16 keep an
// API server busy, and are below what it serves at a time to one client by default.
func Defaults() Options {
	return Options{Workers: 10, Kinds: 16, Settle: 5 * time.Second, SyncPeriod: 5 * time.Minute}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "namespace",
		Summary:  "empties Namespaces that are deleted, and lets them go",
		ActsOn:   []object.Resource{{Version: "v1", Plural: "namespaces", Kind: "Namespace"}},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-namespace-syncs", &o.Workers, "how many Namespaces namespace-controller works on at a time").StopsAtZero(),
				controllers.Duration("namespace-sync-period", &o.SyncPeriod, "how often a Namespace that is being deleted is reconciled again, beside the times that its controller chooses; 0 is never"),
			}
		},
		Cluster: func(o *Options, c controllers.Cluster) {
			if c.OneServer {
				o.Settle = 0
			}
		},
	}, New)
}
