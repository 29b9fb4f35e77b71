// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecidr

import (
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/networking.go.
func Defaults() Options { return Options{Workers: 5} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: Name, Account: "service-cidrs-controller",
		Summary:  "keeps ServiceCIDRs whose addresses are in use from being removed",
		ActsOn:   []object.Resource{kind},
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
