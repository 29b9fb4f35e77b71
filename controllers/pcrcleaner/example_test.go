// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pcrcleaner_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/pcrcleaner"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	cleaner, err := pcrcleaner.New(mgr, pcrcleaner.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", cleaner.Name() == pcrcleaner.Name, mgr.Add(cleaner) == nil)
	// Output: added true true
}
