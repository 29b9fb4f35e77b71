// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversiongc_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/storageversiongc"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	versions, err := storageversiongc.New(mgr, storageversiongc.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", versions.Name() == storageversiongc.Name, mgr.Add(versions) == nil)
	// Output: added true true
}
