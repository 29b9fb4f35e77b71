// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcapublisher

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices. RootCA is still missing.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/certificates.go.
func Defaults() Options {
	return Options{Workers: 1}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "root-ca-cert-publisher", Account: "root-ca-cert-publisher",
		Summary:  "publishes the certificates of the API server in every Namespace",
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
