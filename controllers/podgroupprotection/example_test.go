// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupprotection_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/podgroupprotection"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	groups, err := podgroupprotection.New(mgr, podgroupprotection.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", groups.Name(), mgr.Add(groups) == nil)
	// Output: added podgroup-protection-controller true
}
