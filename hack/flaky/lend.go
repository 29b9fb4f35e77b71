// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/setpoint-io/setpoint/internal/child"
	"github.com/setpoint-io/setpoint/internal/loan"
)

// lend lends control planes to the tests of a run, by the environment that it sets, and
// returns what stops those that are not lent and what ends all. Where no variable
// names the binary, each package has to start its own.
func lend(out io.Writer) (rest, end func(), err error) {
	path := os.Getenv("SETPOINT_CONTROLPLANE_BIN")
	if path == "" || os.Getenv(loan.Variable) != "" {
		return func() {}, func() {}, nil
	}
	lender, err := loan.Listen(func(ctx context.Context, k loan.Kind) (*child.Process, error) {
		return child.Start(ctx, child.Options{Path: path, Nodes: k.Nodes, DualStack: true})
	})
	if err != nil {
		return nil, nil, err
	}
	return lender.Rest, func() {
		err := lender.Close()
		a := lender.Account()
		fmt.Fprintf(out, "%d control planes were lent %d times\n", a.Starts, a.Loans)
		for _, because := range a.Discarded {
			fmt.Fprintln(out, "one was not lent again:", because)
		}
		if err != nil {
			fmt.Fprintln(out, "stopping them:", err)
		}
	}, os.Setenv(loan.Variable, lender.Address())
}
