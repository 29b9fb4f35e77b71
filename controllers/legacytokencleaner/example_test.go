// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package legacytokencleaner_test

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/legacytokencleaner"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller, with half a year instead of one.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	options := legacytokencleaner.Defaults()
	options.CleanUpPeriod = 183 * 24 * time.Hour
	cleaner, err := legacytokencleaner.New(mgr, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", cleaner.Name(), mgr.Add(cleaner) == nil)
	// Output: added legacy-serviceaccount-token-cleaner-controller true
}
