// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package setpointtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// program is the name of the command that runs a cluster.
const program = "setpoint"

// findProgram returns the path of the setpoint command.
func findProgram() (string, error) {
	if named := os.Getenv("SETPOINT_BIN"); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("looking for %s, as $SETPOINT_BIN says: %w", program, err)
		}
		return filepath.Abs(path) // the test may change its directory
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", program, err)
	}
	if path := inBin(dir); path != "" {
		return path, nil
	}
	if path, err := exec.LookPath(program); err == nil {
		return filepath.Abs(path)
	}
	return "", errors.New(program + ` is not installed, and a test needs a cluster: "make build" in a checkout of Setpoint builds it, ` +
		"with setpoint-controlplane beside it. Put both into PATH or into the folder bin of this module, or set SETPOINT_BIN to the path of " +
		program + ". To leave out tests that need a cluster, run go test -short")
}

// inBin returns the program in the folder bin of dir or of a folder above, up to the root
// of the module; "" if there is none.
func inBin(dir string) string {
	for {
		path := filepath.Join(dir, "bin", program)
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}
