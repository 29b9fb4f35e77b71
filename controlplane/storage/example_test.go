// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controlplane/storage"
)

// The simulation runs until its context ends. A server that cannot be reached is waited for.
func ExampleRun() {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	fmt.Println(storage.Run(ctx, storage.Options{}))
	fmt.Println(storage.Run(ctx, storage.Options{
		Config: &rest.Config{Host: "https://127.0.0.1:1"},
		Logger: slog.New(slog.DiscardHandler),
	}))
	// Output:
	// options of the simulated storage: no Config: say how the API server is reached
	// <nil>
}
