// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcepoolstatusrequest

import "github.com/setpoint-io/setpoint/controllers"

// Defaults returns upstream's choices.
func Defaults() Options { return Options{} }

// Descriptor describes the controller. Its kind is of an alpha API, so it acts on no kind that a
// server serves by default.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: Name,
		Summary:  "answers ResourcePoolStatusRequests, if their feature gate is on",
		Rights:   Rights(),
		Defaults: Defaults(),
		Requires: []controllers.RequiredGate{{Name: "DRAResourcePoolStatus"}},
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{{Name: "DRADeviceTaintRules", Set: func(on bool) { o.NoRules = !on }}}
		},
	}, New)
}
