// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupprotection

import "github.com/setpoint-io/setpoint/controllers"

// Defaults returns upstream's choices.
func Defaults() Options { return Options{} }

// Descriptor describes the controller. No kind is acted on by default, because servers do not serve
// PodGroups by default.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name:     Name,
		Alias:    Name,
		Summary:  "keeps PodGroups with Pods that have not ended from being removed",
		Rights:   Rights(),
		Defaults: Defaults(),
		Requires: []controllers.RequiredGate{{Name: "GenericWorkload"}},
	}, New)
}
