// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import "github.com/setpoint-io/setpoint/controllers"

// Defaults returns upstream's choices.
func Defaults() Options { return Options{} }

// Descriptor describes the controller. Upstream starts it only with the feature gate
// SELinuxChangePolicy, which cannot be turned off since Kubernetes 1.36.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: Name, OffByDefault: true,
		Summary:  "says which Pods use one volume with different SELinux labels; if it is named",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
