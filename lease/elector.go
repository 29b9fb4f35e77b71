// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/pause"
)

// Elector stands by for a lease. Acquire is called by one goroutine at a time; Status is
// safe for concurrent use.
type Elector struct {
	client *client.Client
	leases client.Typed[*coordinationv1.Lease]
	config Config
	clock  clock
	log    *slog.Logger
	tasks  sync.WaitGroup // watches

	mu     sync.Mutex
	said   string // the last trouble that was logged
	status Status
}

// Status is what can be seen of an election from outside.
type Status struct {
	Identity    string
	Holder      string // the last one seen; empty: none
	Held        bool   // by this process, for certain
	Transitions int32  // changes of the holder, as the record counts them
	Renewals    uint64 // that succeeded
	Failures    uint64 // requests about the lease that failed
	Trouble     error  // of the last request; nil if it succeeded
}

// New returns an elector that asks the server of c, whose writes must not depend on the
// lease themselves.
func New(c *client.Client, config Config) (*Elector, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("making an elector: %w", err)
	}
	return &Elector{
		client: c, leases: client.ForResource[*coordinationv1.Lease](c, resource), config: config, clock: systemClock(),
		log:    cmp.Or(config.Log, slog.Default()).With("lease", config.Key.String(), "identity", config.Identity),
		status: Status{Identity: config.Identity},
	}, nil
}

// Rights returns what an elector must be allowed to do in the namespace of its Lease.
func (c Config) Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{resource.Group}, Resources: []string{resource.Plural}, Verbs: []string{"create"}},
		{
			APIGroups: []string{resource.Group}, Resources: []string{resource.Plural}, ResourceNames: []string{c.Key.Name},
			Verbs: []string{"get", "watch", "update"},
		},
	}
}

// Status returns what can be seen of the election from outside.
func (e *Elector) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status
}

func (e *Elector) note(f func(*Status)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.status)
}

// say logs an error, and logs it again only after another one.
func (e *Elector) say(what string, err error) {
	text := what + ": " + string(apierrors.ReasonForError(err))
	e.mu.Lock()
	again := e.said == text
	e.said = text
	e.status.Failures++
	e.status.Trouble = err
	e.mu.Unlock()
	if again {
		return
	}
	advice := "trying again until it works"
	if apierrors.IsForbidden(err) {
		advice = "it takes the rights to create, get, watch and update the lease"
	}
	e.log.Warn("trouble with the lease", "what", what, "error", err, "advice", advice)
}

func (e *Elector) fine() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said, e.status.Trouble = "", nil
}

// Acquire stands by until the lease is ours. The error is ctx's. Release the Term, whatever
// became of ctx.
func (e *Elector) Acquire(ctx context.Context) (*Term, error) {
	s := standby{Elector: e}
	for {
		term, err := s.try(ctx)
		switch {
		case term != nil: // even if ctx ended in the last moment
			e.fine()
			return term, nil
		case ctx.Err() != nil:
			e.tasks.Wait()
			return nil, context.Cause(ctx)
		case err != nil:
			e.say("it cannot be had", err)
			pause.For(ctx, e.config.Timing.RetryPeriod)
		}
	}
}

// request bounds a request about the lease: one that hangs must leave time for another.
func (e *Elector) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.config.Timing.RenewDeadline/2)
}

// standby is a process that waits for the lease.
type standby struct {
	*Elector
	seen sighting
	mine mine   // what was sent without an answer
	left string // by the holder before, in the record that mine is to replace
	told string
}

// try reads the lease, waits until it is free or changes, and takes it if it is free. If
// it returns neither a term nor an error, the caller calls it again at once.
func (s *standby) try(ctx context.Context) (*Term, error) {
	ask, cancel := s.request(ctx)
	l, err := s.leases.Get(ask, s.config.Key)
	cancel()
	switch {
	case apierrors.IsNotFound(err):
		// Deleted under its holder, who may not know yet: its time counts on.
		if left := s.seen.left(s.clock(), s.config.Timing.Duration); left > 0 {
			pause.For(ctx, min(left, s.config.Timing.RetryPeriod))
			return nil, nil
		}
		l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.config.Key.Namespace, Name: s.config.Key.Name}}
		return s.take(ctx, l)
	case err != nil:
		return nil, err
	}
	if a, ok := s.mine.find(l); ok { // the answer was lost, the write was not
		if s.clock().atMost(a.sent) <= s.config.Timing.RetryPeriod {
			return s.begin(l, a, s.left), nil
		}
		return s.again(ctx, l)
	}
	s.see(l)
	if !s.waitUntilFree(ctx) {
		return nil, nil
	}
	return s.take(ctx, s.seen.lease)
}

// see notes the record of others.
func (s *standby) see(l *coordinationv1.Lease) {
	s.seen.note(l, s.clock())
	s.Elector.note(func(status *Status) { status.Holder, status.Transitions = holder(l), transitions(l) })
	if h := holder(l); h != s.told && h != "" {
		s.log.Info("standing by", "holder", h)
		s.told = h
	}
}

// waitUntilFree watches the lease until it is free. It returns false if the lease must be
// read again instead.
func (s *standby) waitUntilFree(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var changes <-chan change
	for {
		left := s.seen.left(s.clock(), s.config.Timing.Duration)
		if left == 0 {
			return true
		}
		if changes == nil {
			changes = s.watch(ctx, s.seen.lease.ResourceVersion)
		}
		timer := time.NewTimer(left)
		select {
		case c, ok := <-changes:
			timer.Stop()
			if !ok {
				pause.For(ctx, min(left, s.config.Timing.RetryPeriod))
				return false
			}
			s.fine()
			if c.deleted {
				return false
			}
			s.see(c.lease)
		case <-timer.C:
			s.log.Info("the holder has stopped renewing its lease", "holder", holder(s.seen.lease), "for", s.clock().atLeast(s.seen.at).Round(time.Millisecond))
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// again renews a lease that was taken some time ago, whose answer came late or not at all. A term that began then would have little left of the
// time in which it must be renewed.
func (s *standby) again(ctx context.Context, l *coordinationv1.Lease) (*Term, error) {
	a := s.mine.next(s.clock())
	return s.write(ctx, s.mine.taken(l, a, s.config.Timing, transitions(l)), a)
}

// take writes our record into a lease that is free as of its version.
func (s *standby) take(ctx context.Context, l *coordinationv1.Lease) (*Term, error) {
	now := s.clock()
	s.mine = mine{identity: s.config.Identity, acquired: metav1.NewMicroTime(now.wall.Truncate(time.Microsecond))}
	a := s.mine.next(now)
	changed := transitions(l)
	if l.UID != "" {
		changed++
	}
	s.left = ""
	if holder(l) == "" {
		s.left = l.Annotations[wordAnnotation]
	}
	return s.write(ctx, s.mine.taken(l, a, s.config.Timing, changed), a)
}

// write writes a record of ours, and begins a term with it. There is no term if the lease has changed meanwhile.
func (s *standby) write(ctx context.Context, l *coordinationv1.Lease, a attempt) (*Term, error) {
	ask, cancel := s.request(ctx)
	defer cancel()
	do := s.leases.Update
	if l.UID == "" {
		do = s.leases.Create
	}
	l, err := do(ask, l)
	switch {
	case err == nil:
		return s.begin(l, a, s.left), nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return nil, nil // another process was faster, or changed it
	}
	return nil, err
}
