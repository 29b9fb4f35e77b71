// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// asProgram is set where the test's binary is to be the program: what a test kills is
// built as the test is, with its race detector.
const asProgram = "SETPOINT_WATCH_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}
