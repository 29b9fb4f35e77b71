// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trustbundle

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices. RootCA is still missing.
func Defaults() Options { return Options{} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: Name, Account: "kube-apiserver-serving-clustertrustbundle-publisher",
		Summary:  "publishes the certificates of the API server in a ClusterTrustBundle",
		Requires: []controllers.RequiredGate{{Name: "ClusterTrustBundle", On: true}},
		Rights:   Rights(),
		Defaults: Defaults(),
		Cluster:  func(o *Options, c controllers.Cluster) { o.RootCA = c.RootCA },
		Lacks: func(o *Options) string {
			if len(o.RootCA) == 0 {
				return "the certificates of the API server"
			}
			return ""
		},
	}, New)
}
