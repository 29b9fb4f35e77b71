// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"
)

// Shared is the control plane of all tests of a package; no other package has it at the same
// time. The first call of Get borrows it from the lender of the run, or starts it if there is
// no lender.
type Shared struct {
	Options Options

	once    sync.Once
	dir     string
	cluster *Cluster
	loan    *borrowed // nil: the control plane is our own
	err     error
}

// garbage is how much the heap of a test process grows between two collections, in percent.
// With the race detector, that saves a tenth of the CPU that tests take; the default is 100.
// It concerns this process alone: a control plane with such a heap takes twice the memory,
// and several of them run at once.
const garbage = 400

// parallel is how many parallel tests of a package run at the same time, unless -parallel says
// otherwise. They wait for a server most of their time; go test has as many as there are CPUs.
const parallel = "8"

// Main runs the tests, stops or returns the control plane if there is one, and returns
// the exit status. TestMain calls it.
func (s *Shared) Main(m *testing.M) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	if err := flag.Set("test.parallel", parallel); err != nil { // the command line is read after it
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	status := m.Run()
	if err := s.end(status == 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = max(status, 1)
	}
	return status
}

func (s *Shared) end(passed bool) error {
	var err error
	switch {
	case s.loan != nil:
		err = s.loan.end(passed)
	case s.cluster != nil:
		err = s.cluster.stop()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// Get returns the control plane.
func (s *Shared) Get(t testing.TB) *Cluster {
	t.Helper()
	need(t)
	s.once.Do(func() {
		// The control plane goes on after the first test.
		s.err = s.get(context.WithoutCancel(t.Context()))
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

func (s *Shared) get(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "controlplanetest-"); err != nil {
		return err
	}
	lender := lenderFor(s.Options)
	if lender == "" {
		s.cluster, err = start(ctx, s.dir, s.Options)
		return err
	}
	if s.loan, err = borrow(ctx, lender, s.dir, s.Options); err == nil {
		s.cluster = s.loan.cluster
	}
	return err
}
