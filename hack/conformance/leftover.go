// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// endMarked kills the processes that have the variable mark in their environment, other than
// this one. Tests of controller-runtime leave some that they have started. Without /proc, as on
// systems other than Linux, there is nothing to find.
func endMarked(mark string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == mark }) {
			continue // it has ended, or belongs to another user
		}
		if id, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && id != os.Getpid() {
			_ = syscall.Kill(id, syscall.SIGKILL) // it may have ended
		}
	}
}
