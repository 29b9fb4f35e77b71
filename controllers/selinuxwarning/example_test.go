// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/selinuxwarning"
	"github.com/setpoint-io/setpoint/manager"
)

// A manager that runs the controller. Nothing connects before Run.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	warnings, err := selinuxwarning.New(mgr, selinuxwarning.Defaults())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", warnings.Name(), mgr.Add(warnings) == nil)
	// Output: added selinux-warning-controller true
}
