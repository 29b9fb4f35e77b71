// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// findGo returns the path of the go command.
func findGo() (string, error) {
	path, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("the go command is needed, and is not in PATH: install Go from https://go.dev/dl, "+
			"or write the files without it by --skip-tidy: %w", err)
	}
	return path, nil
}

// tidy has the go command complete go.mod and write go.sum. It may download modules.
func tidy(ctx context.Context, goCommand, dir string, environ []string) error {
	cmd := exec.CommandContext(ctx, goCommand, "mod", "tidy")
	cmd.Dir = dir
	// The new module is in no workspace yet.
	cmd.Env = append(slices.Clone(environ), "GOWORK=off")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the files are written, but \"go mod tidy\" failed in %s; run it there again when its reason is gone: %w\n%s",
			dir, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// workspace returns the path of the go.work that a folder is below, or "". Go commands work on
// the new module only if that file uses it.
func workspace(ctx context.Context, goCommand, dir string, environ []string) string {
	cmd := exec.CommandContext(ctx, goCommand, "env", "GOWORK")
	cmd.Dir, cmd.Env = dir, environ
	output, err := cmd.Output()
	if path := strings.TrimSpace(string(output)); err == nil && path != "off" {
		return path
	}
	return ""
}
