// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager with what brings a Deployment to life. The two controllers share the
// manager's informers, and nothing else.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	sets, err := replicaset.New(mgr, replicaset.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	deployments, err := deployment.New(mgr, deployment.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, part := range []manager.Runnable{sets, deployments} {
		fmt.Println(part.Name(), mgr.Add(part) == nil)
	}
	for _, informer := range mgr.InformerFactory().Status() {
		fmt.Println("reads", informer.Kind)
	}
	// Output:
	// replicaset-controller true
	// deployment-controller true
	// reads deployments.apps
	// reads pods
	// reads replicasets.apps
}
