// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/disruption"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := disruption.New(mgr, disruption.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", d.Name(), mgr.Add(d) == nil)
	// Output: added disruption-controller true
}
