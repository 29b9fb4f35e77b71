// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/podgc"
)

// A program with a configuration of its own changes options and makes the controller.
func Example() {
	d := podgc.Descriptor()
	if o, ok := d.Options.(*podgc.Options); ok {
		o.Period = time.Minute
	}
	for _, flag := range d.Flags {
		fmt.Println(flag)
	}
	fmt.Println(d.Name, "runs as", d.Account())
	// Output:
	// --terminated-pod-gc-threshold=12500
	// pod-garbage-collector-controller runs as kube-system/pod-garbage-collector
}

// A flag sets an option, whose value at first is the default.
func ExampleFlag() {
	workers := 5
	flag := controllers.Int("concurrent-service-endpoint-syncs", &workers, "how many Services are worked on at a time").Between(1, 50)
	fmt.Println(flag, flag.Check())
	workers = 51
	fmt.Println(flag.Check())
	// Output:
	// --concurrent-service-endpoint-syncs=5 <nil>
	// --concurrent-service-endpoint-syncs=51: want 1 to 50
}
