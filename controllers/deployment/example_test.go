// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	options := deployment.Defaults()
	options.Workers = 10
	deployments, err := deployment.New(mgr, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", deployments.Name(), mgr.Add(deployments) == nil)
	// Output: added deployment-controller true
}
