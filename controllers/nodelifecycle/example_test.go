// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, err := nodelifecycle.New(mgr, nodelifecycle.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", nodes.Name(), mgr.Add(nodes) == nil)
	// Output: added node-lifecycle-controller true
}
