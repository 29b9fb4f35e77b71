// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/setpoint-io/setpoint/internal/scripttest"
)

// asProgram is set where the test's binary is to be the program: what a test kills is
// built as the test is, with its race detector.
const asProgram = "SETPOINT_WATCH_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "eventually" { // a link to this binary, see programs
		scripttest.Eventually()
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	// Under nohup, say, SIGHUP is ignored, and would be by all programs that the tests
	// start. What is caught here is back at its default there.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(m.Run())
}
