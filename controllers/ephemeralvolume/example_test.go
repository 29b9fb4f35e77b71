// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ephemeralvolume_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/ephemeralvolume"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	volumes, err := ephemeralvolume.New(mgr, ephemeralvolume.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", volumes.Name(), mgr.Add(volumes) == nil)
	// Output: added ephemeral-volume-controller true
}
