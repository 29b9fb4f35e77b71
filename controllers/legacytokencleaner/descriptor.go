// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package legacytokencleaner

import (
	"time"

	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/pkg/controller/serviceaccount/config/v1alpha1.
func Defaults() Options {
	return Options{CleanUpPeriod: 365 * 24 * time.Hour}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "legacy-service-account-token-cleaner", Account: "legacy-service-account-token-cleaner",
		Summary:  "removes unused service-account tokens in Secrets",
		Rights:   Rights(),
		Defaults: Defaults(),
		Flags: func(o *Options) []controllers.Flag {
			return []controllers.Flag{
				controllers.Duration("legacy-service-account-token-clean-up-period", &o.CleanUpPeriod, "how long a service-account token in a Secret is unused before it is made invalid, and again before it is deleted").StopsAtZero(),
			}
		},
	}, New)
}
