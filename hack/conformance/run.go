// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"

	"github.com/setpoint-io/setpoint/internal/operators"
)

// run runs the tests in a copy of the module.
func (s suite) run(ctx context.Context, assets string) (_ []*count, err error) {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := operators.CopyModule(ctx, s.module, dir); err != nil {
		return nil, err
	}
	return s.test(ctx, io.Discard, dir, assets)
}

// test runs the tests in a directory that has the module. A line for each package that has ended goes to
// progress.
func (s suite) test(ctx context.Context, progress io.Writer, dir, assets string, flags ...string) ([]*count, error) {
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
	counts, err := read(out, progress)
	ended := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(ended, &exit) {
		ended = nil // the counts say what failed
	}
	if len(counts) == 0 {
		ended = errors.Join(ended, errors.New("go test ran nothing"))
	}
	return counts, errors.Join(context.Cause(ctx), err, ended)
}
