// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices. PrivateKey is still missing.
// Source: k8s.io/kubernetes/pkg/controller/serviceaccount/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "serviceaccount-token", Account: "tokens-controller",
		Summary:  "fills Secrets with tokens of ServiceAccounts, and removes them",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-serviceaccount-token-syncs", &o.Workers, "how many Secrets serviceaccount-token-controller works on at a time").StopsAtZero(),
			}
		},
		Cluster: func(o *Options, c controllers.Cluster) { o.PrivateKey, o.RootCA = c.ServiceAccountKey, c.RootCA },
		Lacks: func(o *Options) string {
			if len(o.PrivateKey) == 0 {
				return "a private key for service accounts"
			}
			return ""
		},
	}, New)
}
