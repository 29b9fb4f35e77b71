// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"fmt"
	"os"
	"os/exec"
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

// variables are the environment variables by which make names the binaries.
var variables = map[string]string{
	"setpoint":                "SETPOINT_BIN",
	"setpoint-controlplane":   "SETPOINT_CONTROLPLANE_BIN",
	"kubectl":                 "KUBECTL",
	"kube-controller-manager": "KUBE_CONTROLLER_MANAGER",
}

// Binary returns the path of one of the binaries that make builds: setpoint,
// setpoint-controlplane, kubectl or kube-controller-manager.
func Binary(name string) (string, error) {
	variable := variables[name]
	if path := os.Getenv(variable); path != "" {
		path, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("looking for %s, as $%s says: %w; run make build kubectl kube-controller-manager", name, variable, err)
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
			return "", fmt.Errorf("looking for %s: %w; run make build kubectl kube-controller-manager, or set $%s", name, err, variable)
		}
		return path, nil
	}
	return "", fmt.Errorf("looking for %s: the test does not run in the repository; set $%s", name, variable)
}
