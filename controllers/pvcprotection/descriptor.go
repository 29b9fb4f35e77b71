// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection

import "github.com/setpoint-io/setpoint/controllers"

// Defaults returns upstream's choices.
func Defaults() Options { return Options{} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "pvc-protection", Account: "pvc-protection-controller",
		Summary:  "keeps PersistentVolumeClaims that Pods use from being removed",
		Rights:   Rights(),
		Defaults: Defaults(),
		Gates: func(o *Options) []controllers.Gate {
			return []controllers.Gate{
				{Name: "PersistentVolumeClaimUnusedSinceTime", Set: func(on bool) { o.OmitUnused = !on }},
			}
		},
	}, New)
}
