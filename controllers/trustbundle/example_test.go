// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trustbundle_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/trustbundle"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	bundles, err := trustbundle.New(mgr, trustbundle.Options{RootCA: []byte("certificates in PEM")})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", bundles.Name() == trustbundle.Name, mgr.Add(bundles) == nil)
	// Output: added true true
}
