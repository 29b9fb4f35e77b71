// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/internal/filelock"
)

// A lock is the open file's: two of one process are to each other as those of two processes.
func TestALockEndsWithItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	check := func(what string, want bool, f *os.File, try func(*os.File) (bool, error)) {
		t.Helper()
		if got, err := try(f); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	first, second, third := open(), open(), open()
	check("the first", true, first, filelock.Try)
	check("a second", false, second, filelock.Try)
	check("a shared one", false, second, filelock.TryShared)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	check("a shared one afterwards", true, second, filelock.TryShared)
	check("another shared one", true, third, filelock.TryShared)
	check("one for itself beside two shared ones", false, open(), filelock.Try)
}
