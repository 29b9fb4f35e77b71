// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/attachdetach"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := attachdetach.New(mgr, attachdetach.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", c.Name(), mgr.Add(c) == nil)
	// Output: added persistentvolume-attach-detach-controller true
}
