// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is the control plane of all tests of a package. It is started by the
// first test that gets it.
type Shared struct {
	Options Options

	once    sync.Once
	dir     string
	cluster *Cluster
	err     error
}

// Main runs the tests, stops the control plane if one was started, and returns the
// exit status. TestMain calls it.
func (s *Shared) Main(m *testing.M) int {
	status := m.Run()
	if s.cluster != nil {
		if err := s.cluster.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = max(status, 1)
		}
	}
	if s.dir != "" {
		if err := os.RemoveAll(s.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = max(status, 1)
		}
	}
	return status
}

// Get returns the control plane.
func (s *Shared) Get(t testing.TB) *Cluster {
	t.Helper()
	need(t)
	s.once.Do(func() {
		//nolint:usetesting // the directory outlives the test that happens to be the first
		if s.dir, s.err = os.MkdirTemp("", "controlplanetest-"); s.err != nil {
			return
		}
		// It outlives the test that happens to be the first.
		s.cluster, s.err = start(context.WithoutCancel(t.Context()), s.dir, s.Options)
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}
