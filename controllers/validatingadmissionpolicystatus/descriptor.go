// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus/config/v1alpha1.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: Name,
		Summary:  "checks the types in the expressions of ValidatingAdmissionPolicies",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Int("concurrent-validating-admission-policy-status-syncs", &o.Workers, "how many ValidatingAdmissionPolicies "+Name+" works on at a time").StopsAtZero(),
			}
		},
	}, New)
}
