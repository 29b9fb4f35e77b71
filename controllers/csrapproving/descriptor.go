// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrapproving

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/certificates.go.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "csrapproving", Account: "certificate-controller",
		Summary:  "approves certificate requests of kubelets that have the right to them",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
