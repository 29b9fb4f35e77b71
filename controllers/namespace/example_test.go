// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller, for a cluster with one API server: there is
// nobody who might not know yet that a namespace terminates.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	options := namespace.Defaults()
	options.Settle = 0 // there is one API server
	namespaces, err := namespace.New(mgr, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", namespaces.Name(), mgr.Add(namespaces) == nil)
	// Output: added namespace-controller true
}
