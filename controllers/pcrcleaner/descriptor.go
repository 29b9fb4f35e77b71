// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pcrcleaner

import (
	"github.com/setpoint-io/setpoint/controllers"
)

// Defaults returns upstream's choices.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/certificates.go.
func Defaults() Options { return Options{} }

// Descriptor describes the controller.
func Descriptor() *controllers.Descriptor {
	return controllers.Define(controllers.Definition[Options]{
		Name: Name, Alias: Name, Account: "podcertificaterequestcleaner",
		Summary:  "deletes PodCertificateRequests that are older than 15 minutes",
		Requires: []controllers.RequiredGate{{Name: "PodCertificateRequest", On: true}},
		Rights:   Rights(),
		Defaults: Defaults(),
	}, New)
}
