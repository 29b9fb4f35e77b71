// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package unsure

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFlaky fails in its first run and in every third after it: each run leaves a
// byte in a file of the folder that UNSURE names.
func TestFlaky(t *testing.T) {
	file, err := os.OpenFile(filepath.Join(os.Getenv("UNSURE"), "runs"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("."); err != nil {
		t.Fatal(err)
	}
	if info.Size()%3 == 0 {
		t.Fatalf("run %d: this one fails", info.Size())
	}
	t.Logf("run %d: this one passes", info.Size())
}

func TestSure(t *testing.T) {}

func TestSkipped(t *testing.T) { t.Skip("never here") }
