// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tokencleaner

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/bootstrap, TokenCleaner.
func Defaults() Options {
	return Options{Workers: 1}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "tokencleaner", Account: "token-cleaner", OffByDefault: true,
		Summary:  "deletes bootstrap tokens that have expired; if it is named",
		RightsIn: Rights(),
		Defaults: Defaults(),
	}, New)
}
