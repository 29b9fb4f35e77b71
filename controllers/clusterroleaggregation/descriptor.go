// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterroleaggregation

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/rbac.go.
func Defaults() Options {
	return Options{Workers: 5}
}

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: "clusterrole-aggregation",
		Summary:  "fills ClusterRoles that are sums of others, as admin, edit and view",
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
