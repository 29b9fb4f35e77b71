// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// FindProgram looks for another program of this project. The error is exec.ErrNotFound if it
// is neither beside this program nor in PATH.
func (w *World) FindProgram(name string) (string, error) {
	beside := filepath.Join(filepath.Dir(w.Executable), name)
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		return "", fmt.Errorf("%w; PATH should not name the current folder", err)
	}
	return path, err
}
