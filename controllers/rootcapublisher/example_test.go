// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcapublisher_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/rootcapublisher"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that publishes the certificates by which it knows the server itself.
func Example() {
	config := &rest.Config{Host: "https://127.0.0.1:6443"}
	config.CAData = []byte("-----BEGIN CERTIFICATE-----\n…")
	mgr, err := manager.New(&rest.Config{Host: config.Host})
	if err != nil {
		fmt.Println(err)
		return
	}
	options := rootcapublisher.Defaults()
	options.RootCA = config.CAData
	publisher, err := rootcapublisher.New(mgr, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", publisher.Name(), mgr.Add(publisher) == nil)
	// Output: added root-ca-certificate-publisher-controller true
}
