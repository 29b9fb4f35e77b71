// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices_test

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controlplane/devices"
)

// The simulation runs until its context ends. A server that cannot be reached is waited for.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(devices.Run(ctx, devices.Options{}))
	fmt.Println(devices.Run(ctx, devices.Options{
		Config: &rest.Config{Host: "https://127.0.0.1:1"},
		Logger: slog.New(slog.DiscardHandler),
	}))
	// Output:
	// options of the simulated devices: no Config: say how the API server is reached
	// <nil>
}
