// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"errors"
	"fmt"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

func Example() {
	chosen, err := registry.Select(registry.Known(), []string{"deployment", "replicaset"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range chosen {
		fmt.Printf("%s %s\n", d.Name, d.Summary)
	}
	_, err = registry.Select(registry.Known(), []string{"deploymnet"})
	if unknown, ok := errors.AsType[*registry.UnknownError](err); ok {
		fmt.Printf("no %s, perhaps %s?\n", unknown.Name, unknown.Nearest)
	}
	// Output:
	// deployment-controller rolls Deployments out and back, by way of ReplicaSets
	// replicaset-controller keeps as many Pods as each ReplicaSet wants
	// no deploymnet, perhaps deployment-controller?
}
