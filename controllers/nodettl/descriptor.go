// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodettl

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/core.go.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "ttl",
		Summary:  "annotates Nodes with how long kubelets may keep Secrets and ConfigMaps",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
