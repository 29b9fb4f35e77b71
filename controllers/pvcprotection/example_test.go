// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvcprotection_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/pvcprotection"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	claims, err := pvcprotection.New(mgr, pvcprotection.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", claims.Name(), mgr.Add(claims) == nil)
	// Output: added persistentvolumeclaim-protection-controller true
}
