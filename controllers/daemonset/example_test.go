// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/daemonset"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := daemonset.New(mgr, daemonset.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", d.Name(), mgr.Add(d) == nil)
	// Output: added daemonset-controller true
}
