// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package bootstrapsigner

import (
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
)

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[struct{}]{
		Name: Name, Alias: "bootstrapsigner", Account: "bootstrap-signer", OffByDefault: true,
		Summary:  "signs what new nodes read, with bootstrap tokens; if it is named",
		RightsIn: Rights(),
	}, func(h controller.Host, _ struct{}) (*controller.Controller, error) { return New(h) })
}
