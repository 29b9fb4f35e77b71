// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcequota_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/resourcequota"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := resourcequota.New(mgr, resourcequota.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", r.Name(), mgr.Add(r) == nil)
	// Output: added resourcequota-controller true
}
