// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/core.go.
func Defaults() Options {
	return Options{Workers: 1}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "serviceaccount", Account: "service-account-controller",
		Summary:  "makes the ServiceAccount default in every Namespace",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
