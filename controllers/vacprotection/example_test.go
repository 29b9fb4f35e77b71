// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package vacprotection_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/vacprotection"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	classes, err := vacprotection.New(mgr, vacprotection.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", classes.Name(), mgr.Add(classes) == nil)
	// Output: added volumeattributesclass-protection-controller true
}
