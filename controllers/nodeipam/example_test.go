// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/nodeipam"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	options := nodeipam.Defaults()
	options.ClusterCIDR = "10.244.0.0/16"
	ranges, err := nodeipam.New(mgr, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", ranges.Name(), mgr.Add(ranges) == nil)
	// Output: added node-ipam-controller true
}
