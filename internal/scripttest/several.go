// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Run runs scripts, so many at a time, and returns when all have ended. Scripts wait more
// than they compute, so there may be more of them than processors, which is how many
// testscript.Run would run.
func Run(t *testing.T, atATime int, p testscript.Params) {
	t.Helper()
	s := &several{T: t, turns: make(chan struct{}, atATime)}
	defer s.running.Wait()
	testscript.RunT(s, p)
}

// several is a test whose parts run at the same time, as many as there are turns.
type several struct {
	*testing.T
	turns   chan struct{}
	running sync.WaitGroup
}

// Run implements testscript.T. It returns when the part has begun.
func (s *several) Run(name string, script func(testscript.T)) {
	s.turns <- struct{}{}
	s.running.Go(func() {
		defer func() { <-s.turns }()
		s.T.Run(name, func(t *testing.T) { script(&several{T: t}) })
	})
}

// Parallel implements testscript.T. Parts run at the same time as it is.
func (s *several) Parallel() {}

// Verbose implements testscript.T.
func (s *several) Verbose() bool { return testing.Verbose() }
