// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/lease"
)

// LeaderElection has the manager work only while it holds a lease: of several managers
// one works, and the others stand by with warm caches. An identity that is empty is made
// of the manager's instance and something random, so that no two are alike. The manager
// brings its own log.
//
// When a term ends because the lease could not be renewed, or was taken, Run returns an
// error; a supervisor begins anew.
func LeaderElection(c lease.Config) Option { return func(m *Manager) { m.election = &c } }

// KeepLease has a manager that stops leave its lease to expire. By default it lets go of it,
// so that nobody waits for a process that is gone.
func KeepLease() Option { return func(m *Manager) { m.keepLease = true } }

// releaseMost is how long letting go of the lease may take.
const releaseMost = 2 * time.Second

// elect stands by until this process holds the lease, if there is one to hold. From then
// on writes pass the fence. It returns the context of the term, and what ends it.
func (m *Manager) elect(ctx context.Context) (term context.Context, release func(), err error) {
	if m.elector == nil {
		return context.WithoutCancel(ctx), func() {}, nil
	}
	m.phase.Store("standing by")
	t, err := m.elector.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	m.fence.term.Store(t)
	m.catchUp(ctx, t.Left())
	return t.Context(), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseMost)
		defer cancel()
		if m.keepLease {
			cancel() // the term ends all the same; the request that would say so is never sent
			_ = t.Release(ctx, "")
			return
		}
		if err := t.Release(ctx, m.written.String()); err != nil {
			m.log.Warn("the lease was not released", "error", err)
		}
	}, nil
}

// identity returns one that no other process has.
func identity(instance string) string { return fmt.Sprintf("%s_%s", instance, rand.Text()[:10]) }
