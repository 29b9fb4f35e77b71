// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicationcontroller_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	replicationControllers, err := replicationcontroller.New(mgr, replicationcontroller.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", replicationControllers.Name(), mgr.Add(replicationControllers) == nil)
	// Output: added replicationcontroller-controller true
}
