// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// checks is how many random histories each property is tried with. Bounds that are
// off by one in a rare order of events have taken up to 700 to be found.
const checks = 1000

// TestMain sets the number of checks, unless -short or a flag says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	given := testing.Short()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", fmt.Sprint(checks)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
