// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package cronjob

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// withoutFiles is set in the process that may open no file.
const withoutFiles = "SETPOINT_TEST_WITHOUT_FILES"

// This machine has files with time zones. A process that may open no file is like one on a machine
// or in an image without them.
func TestTheZonesOfSchedulesAreInTheBinary(t *testing.T) {
	if os.Getenv(withoutFiles) != "" {
		parseWithoutFiles(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), withoutFiles+"=1")
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("a process without files: %v\n%s", err, out)
	}
}

func parseWithoutFiles(t *testing.T) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	if f, err := os.Open(os.DevNull); err == nil {
		t.Fatalf("the process has opened %s", f.Name())
	}
	s, err := parse("30 8 * * *", "Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.next(began), time.Date(2026, 3, 3, 3, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("the slot is %s, want %s", got, want)
	}
}
