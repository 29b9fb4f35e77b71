// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ephemeralvolume

import "github.com/setpoint-io/setpoint/controllers"

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/volume/ephemeral/config/v1alpha1.
func Defaults() Options { return Options{Workers: 5} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "ephemeral-volume",
		Summary:  "creates the claims of generic ephemeral volumes",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-ephemeralvolume-syncs", &o.Workers, "how many Pods ephemeral-volume-controller works on at a time").AtLeast(1),
			}
		},
	}, New)
}
