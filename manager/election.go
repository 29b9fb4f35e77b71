// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/setpoint-io/setpoint/lease"
)

// LeaderElection has the manager work only while it holds a lease: of several managers
// one works, and the others stand by with warm caches. An identity that is empty is made
// of the manager's instance and something random, so that no two are alike. The manager
// brings its own log.
//
// When a term ends because the lease could not be renewed, or was taken, Run returns an
// error; a supervisor restarts the process.
func LeaderElection(c lease.Config) Option { return func(m *Manager) { m.election = &c } }

// KeepLease has a manager that stops leave its lease to expire. By default it releases the
// lease, so that no process waits for one that is gone.
func KeepLease() Option { return func(m *Manager) { m.keepLease = true } }

// Elected returns a channel that is closed when the manager begins to work: it holds its lease, or needs none.
func (m *Manager) Elected() <-chan struct{} { return m.elected }

// elect stands by until this process holds the lease, if there is one to hold. From then
// on writes pass the fence. It returns the context of the term, and what ends it; none if
// the stop came first. The error says what was left behind.
func (m *Manager) elect(s *stop) (term context.Context, release func(), left error) {
	if m.elector == nil {
		return context.WithoutCancel(s.ctx), func() {}, nil
	}
	m.phase.Store("standing by")
	endStandingBy := m.standBy()
	defer func() {
		if term == nil {
			endStandingBy()
		}
	}()
	var t *lease.Term
	if left := s.do(parts, always("standing by for the lease"), func() { t, _ = m.elector.Acquire(s.ctx) }, func() {
		if t != nil { // no controller has worked in that term
			m.release(s, t, "")
		}
	}); left != nil || t == nil {
		return nil, nil, left
	}
	m.fence.term.Store(t)
	m.catchUp(s.ctx, t.Left())
	return t.Context(), func() { m.release(s, t, m.written.String()) }, nil
}

// standBy has the loops follow their informers until they run. end is for loops that will not run.
func (m *Manager) standBy() (end func()) {
	var ends []func()
	for _, l := range m.loops() {
		if endOne, err := l.StandBy(); err == nil { // Run has the same error
			ends = append(ends, endOne)
		}
	}
	return func() {
		for _, endOne := range ends {
			endOne()
		}
	}
}

// release ends a term and releases the lease, with a word for the next holder.
func (m *Manager) release(s *stop, t *lease.Term, word string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 3*s.share()/2)
	defer cancel()
	if m.keepLease {
		cancel() // the term ends all the same; the request that would say so is never sent
		_ = t.Release(ctx, "")
		return
	}
	if err := t.Release(ctx, word); err != nil {
		m.log.Warn("the lease was not released", "error", err)
	}
}

// identity returns one that no other process has.
func identity(instance string) string { return fmt.Sprintf("%s_%s", instance, rand.Text()[:10]) }
