// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversiongc

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
func Defaults() Options { return Options{Workers: 1} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "storage-version-gc", Account: "storage-version-garbage-collector",
		Summary:  "removes API servers that are gone from StorageVersions",
		Requires: []controllers.RequiredGate{{Name: "APIServerIdentity", On: true}, {Name: "StorageVersionAPI"}},
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
