// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvprotection

import "github.com/setpoint-io/setpoint/controllers"

// Defaults returns upstream's choices.
func Defaults() Options { return Options{} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "pv-protection", Account: "pv-protection-controller",
		Summary:  "keeps PersistentVolumes that are bound from being removed",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
