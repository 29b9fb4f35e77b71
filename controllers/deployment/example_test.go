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
	deployments, err := deployment.New(mgr, deployment.Options{Workers: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", deployments.Name(), mgr.Add(deployments) == nil)
	// Output: added deployment-controller true
}
