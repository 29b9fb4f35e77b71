// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices. Authorities are still missing.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/certificates.go.
func Defaults() Options {
	return Options{Workers: 5, Longest: LongestLifetime}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "csrsigning", Account: "certificate-controller",
		Summary:  "signs certificates whose requests were approved",
		ActsOn:   []object.Resource{{Group: "certificates.k8s.io", Version: "v1", Plural: "certificatesigningrequests", Kind: "CertificateSigningRequest"}},
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Duration("cluster-signing-duration", &o.Longest, "how long a certificate lasts at most").StopsAtZero(),
			}
		},
		Cluster: func(o *Options, c controllers.Cluster) {
			o.Authorities = map[string]Source{}
			for signer, files := range c.Signing {
				o.Authorities[signer] = Files(files.Cert, files.Key)
			}
		},
		Lacks: func(o *Options) string {
			if len(o.Authorities) == 0 {
				return "a certificate authority to sign with"
			}
			return ""
		},
	}, New)
}
