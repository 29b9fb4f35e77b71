// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// run runs the tests in a copy of the module.
func (s suite) run(ctx context.Context, assets string) (_ []*count, err error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := copyModule(ctx, s.module, dir); err != nil {
		return nil, err
	}
	return s.test(ctx, dir, assets)
}

// test runs the tests in a directory that has the module.
func (s suite) test(ctx context.Context, dir, assets string, flags ...string) ([]*count, error) {
	// The tests inherit the variable, and so does what they start.
	mark := "CONFORMANCE_DIRECTORY=" + dir
	defer endMarked(mark)
	args := slices.Concat([]string{"test", "-json", "-count=1", "-timeout=30m"}, flags, s.packages)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "KUBEBUILDER_ASSETS="+assets, mark)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	counts, err := read(out)
	ended := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(ended, &exit) {
		ended = nil // the counts say what failed
	}
	if len(counts) == 0 {
		ended = errors.Join(ended, errors.New("go test ran nothing"))
	}
	return counts, errors.Join(context.Cause(ctx), err, ended)
}

// copyModule downloads a module, path@version, and copies it. Files of modules are not executable and cannot be
// written to; scripts that tests start must be, and tests write beside themselves.
func copyModule(ctx context.Context, name, dir string) error {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", name).Output()
	if err != nil {
		return fmt.Errorf("downloading %s: %w\n%s", name, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return fmt.Errorf("downloading %s: %w", name, err)
	}
	return filepath.WalkDir(module.Dir, func(from string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(from, module.Dir))
		if e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		text, err := os.ReadFile(from) //nolint:gosec // the cache of modules is the user's own
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if bytes.HasPrefix(text, []byte("#!")) {
			mode = 0o700
		}
		return os.WriteFile(to, text, mode) //nolint:gosec // below a directory that this process has made
	})
}
