// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/object"
)

// SecondLease has the parts of these names work only while the manager also holds another lease, which another program may hold to run
// the same parts: a cluster moves controllers from one controller manager to another so. All other parts work without it. Its timing and
// identity are those of the manager's own lease, so the option needs [LeaderElection].
//
// When its term ends because the lease could not be renewed, or was taken, Run returns an error, as for the manager's own.
// Source: k8s.io/controller-manager/pkg/leadermigration.
func SecondLease(key object.Key, parts ...string) Option {
	return func(m *Manager) { m.second = &secondLease{key: key, parts: parts} }
}

// secondLease is what some parts wait for.
type secondLease struct {
	key     object.Key
	parts   []string
	elector *lease.Elector
	log     *slog.Logger

	term *lease.Term   // once held
	held chan struct{} // closed when term is there
	over chan struct{} // closed when nothing waits for the lease any more
}

// prepare makes the elector. own is the manager's, nil if it has none.
func (s *secondLease) prepare(m *Manager, own *lease.Config) (err error) {
	if own == nil {
		return errors.New("a second lease needs one of the manager's own; give manager.LeaderElection")
	}
	c := *own
	c.Key, s.log, s.held, s.over = s.key, m.log, make(chan struct{}), make(chan struct{})
	if c.Key == own.Key {
		return fmt.Errorf("the second lease, %s, is the manager's own", c.Key)
	}
	s.elector, err = lease.New(m.own, c)
	return err
}

// acquire stands by for the lease until ctx ends. lost is called when a term ends against its will.
func (s *secondLease) acquire(ctx context.Context, lost func(error)) {
	if s == nil {
		return
	}
	s.log.Info("these controllers wait for a second lease", "lease", s.key.String(), "controllers", strings.Join(s.parts, ","))
	go func() {
		defer close(s.over)
		term, err := s.elector.Acquire(ctx)
		if err != nil {
			return // ctx has ended
		}
		s.term = term
		close(s.held)
		context.AfterFunc(term.Context(), func() {
			if ctx.Err() == nil {
				lost(fmt.Errorf("holding the lease %s: %w", s.key, context.Cause(term.Context())))
			}
		})
	}()
}

// await waits until a part may work, and returns a context that ends when it may not any more. It has ended already if ctx ends first.
func (s *secondLease) await(ctx context.Context, part string) context.Context {
	if s == nil || !slices.Contains(s.parts, part) {
		return ctx
	}
	select {
	case <-s.held:
	case <-ctx.Done():
		return ctx
	}
	working, end := context.WithCancel(ctx)
	context.AfterFunc(s.term.Context(), end)
	return working
}

// release releases the lease, once no part works and the context of acquire has ended.
func (s *secondLease) release(m *Manager, stop *stop) {
	if s == nil {
		return
	}
	<-s.over
	if s.term != nil {
		m.release(stop, s.term, "")
	}
}
