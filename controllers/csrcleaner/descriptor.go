// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrcleaner

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/certificates.go.
func Defaults() Options {
	return Options{Workers: 1}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "csrcleaner", Account: "certificate-controller",
		Summary:  "deletes CertificateSigningRequests that are no longer needed",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
