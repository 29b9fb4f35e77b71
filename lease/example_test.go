// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func Example() {
	server := fakeapi.New().Serve(leases)
	c, err := client.New(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	elector, err := lease.New(c, lease.Config{
		Key: object.Key{Namespace: "kube-system", Name: "my-controller"}, Identity: "host-1",
		Timing: lease.DefaultTiming, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	term, err := elector.Acquire(ctx) // stands by while somebody else has it
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("certain:", term.Certain() == nil)
	fmt.Println("released:", term.Release(ctx, "") == nil)
	fmt.Println(term.Certain())
	// Output:
	// certain: true
	// released: true
	// the lease has been released
}
