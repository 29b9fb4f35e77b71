// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// need skips a test in short mode.
func need(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
}

// find returns the path of a binary: what an environment variable says, else what
// is in the folder bin of the repository that the test runs in.
func find(variable, name string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("looking for %s, as %s says: %w; run make build", name, variable, err)
		}
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", name, err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		// The root of the repository is where the workspace is.
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err != nil {
			continue
		}
		path := filepath.Join(dir, "bin", name)
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("looking for %s: %w; run make build kubectl, or set %s", name, err, variable)
		}
		return path, nil
	}
	return "", fmt.Errorf("looking for %s: the test does not run in the repository; set %s", name, variable)
}
