// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	collector, err := podgc.New(mgr, podgc.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", collector.Name(), mgr.Add(collector) == nil)
	// Output: added pod-garbage-collector-controller true
}
