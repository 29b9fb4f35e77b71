// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

func Example() {
	chosen, err := registry.Select([]string{"*", "-nodelifecycle", "-serviceaccount"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, entry := range chosen {
		fmt.Printf("%s %s\n", entry.Name, entry.Summary)
	}
	_, err = registry.Select([]string{"deploymnet"})
	fmt.Println(err)
	// Output:
	// deployment-controller rolls Deployments out and back, by way of ReplicaSets
	// replicaset-controller keeps as many Pods as each ReplicaSet wants
	// choosing controllers: no controller is called "deploymnet"; did you mean deployment-controller? There are: deployment-controller, node-lifecycle-controller, replicaset-controller, serviceaccount-controller
}
