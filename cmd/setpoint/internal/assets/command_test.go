// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sleeper writes a program that does not end, and leaves a process that keeps its output open.
func sleeper(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sleeper")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nsleep 3600 &\necho $! >\"${0%/*}/pid\"\nwait\n"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return path
}

func TestABinaryThatDoesNotEndIsAnError(t *testing.T) {
	t.Parallel()
	binary := sleeper(t)
	err := try(t.Context(), binary, 10*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), binary+" is no setpoint-controlplane") || !strings.Contains(err.Error(), "within 10ms") {
		t.Errorf("got %v", err)
	}
}

func TestTheEndOfTheCommandEndsTheTrial(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := try(ctx, sleeper(t), time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
