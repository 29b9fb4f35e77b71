// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
)

// Term is a time in which this process holds the lease. Its methods are safe for
// concurrent use.
type Term struct {
	e       *Elector
	hold    *hold
	stop    context.CancelFunc // ends renewing, and nothing else
	renewal sync.WaitGroup

	left string // by the holder before

	// Of the goroutine that renews, and after its end of Release.
	mine mine
	last *coordinationv1.Lease // as the server has it
}

// begin begins a term with a record that the server has.
func (e *Elector) begin(l *coordinationv1.Lease, a attempt, left string) *Term {
	t := &Term{
		e: e, hold: newHold(e.clock, e.config.Timing.RenewDeadline, a.sent), last: l, left: left,
		mine: mine{identity: e.config.Identity, acquired: *l.Spec.AcquireTime, attempts: []attempt{a}},
	}
	ctx, stop := context.WithCancel(t.hold.ctx)
	t.stop = stop
	e.note(func(s *Status) { s.Holder, s.Held, s.Transitions = e.config.Identity, true, transitions(l) })
	e.log.Info("leading", "term", transitions(l))
	context.AfterFunc(t.hold.ctx, func() {
		e.note(func(s *Status) { s.Held = false })
		if why := context.Cause(t.hold.ctx); !errors.Is(why, errReleased) {
			e.log.Error("no longer leading", "reason", why)
		}
	})
	t.renewal.Go(func() { t.renew(ctx) })
	return t
}

// Context ends when the term does. Its cause says why: the lease was released, was taken by
// another process, or could not be renewed in time ([ErrExpired]).
func (t *Term) Context() context.Context { return t.hold.ctx }

// Certain returns nil if the lease is held at this moment, and otherwise why that is not
// certain. It sends no request and takes some 100 ns. What is uncertain may be certain
// again later, unless the term has ended.
func (t *Term) Certain() error { return t.hold.certain() }

// Left is what the holder before said to this one when it released the lease; empty if it
// did not.
func (t *Term) Left() string { return t.left }

// Release ends the term and then releases the lease. For a term that has ended otherwise,
// Release does nothing: other processes wait for its lease to expire. word is for the
// next holder; it stands in an annotation.
func (t *Term) Release(ctx context.Context, word string) error {
	ended := t.hold.ctx.Err() != nil
	t.hold.end(errReleased) // before another process may begin
	t.stop()
	t.renewal.Wait()
	t.e.tasks.Wait()
	t.hold.timer.Stop()
	if ended {
		return nil
	}
	ctx, cancel := t.e.request(ctx)
	defer cancel()
	_, err := t.e.leases.Update(ctx, released(t.last, t.e.clock(), word))
	for again := 0; apierrors.IsConflict(err) && again < 3; again++ {
		var l *coordinationv1.Lease
		if l, err = t.e.leases.Get(ctx, t.e.config.Key); err != nil {
			break
		}
		if _, own := t.mine.find(l); !own {
			return nil // another process holds it
		}
		_, err = t.e.leases.Update(ctx, released(l, t.e.clock(), word))
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("releasing lease %s: %w; others wait until it expires", t.e.config.Key, err)
	}
	t.e.note(func(s *Status) { s.Holder = "" })
	t.e.log.Info("released the lease")
	return nil
}

// renew renews the lease until ctx ends.
func (t *Term) renew(ctx context.Context) {
	ticker := time.NewTicker(t.e.config.Timing.RetryPeriod)
	defer ticker.Stop()
	changes := t.e.watch(ctx, t.last.ResourceVersion)
	for {
		select {
		case <-ctx.Done():
			return
		case c, ok := <-changes:
			if !ok {
				changes = nil // begun again with the next renewal
				continue
			}
			if !t.foreign(c) {
				continue
			}
		case <-ticker.C:
		}
		ask, cancel := t.e.request(ctx)
		err := t.once(ask)
		cancel()
		switch taken := (*takenError)(nil); {
		case ctx.Err() != nil:
			return
		case err == nil:
			t.e.fine()
			t.e.note(func(s *Status) { s.Renewals++ })
			if changes == nil {
				changes = t.e.watch(ctx, t.last.ResourceVersion)
			}
		case errors.As(err, &taken):
			t.e.note(func(s *Status) { s.Holder = taken.holder })
			t.hold.end(err)
			return
		default:
			t.e.say("it cannot be renewed", err)
		}
	}
}

// foreign takes in a change, and reports whether the lease must be read because of it: it
// was deleted, or has a record that is not of this term. It does not count as held then.
func (t *Term) foreign(c change) bool {
	if known := versionOf(t.last); known.AtLeast(versionOf(c.lease)) {
		return false
	}
	if c.deleted {
		t.hold.suspect(errors.New("the lease was deleted"))
		return true
	}
	if _, own := t.mine.find(c.lease); own {
		return false
	}
	t.hold.suspect(&takenError{holder(c.lease)})
	return true
}

// once renews the lease. A *takenError says that it is not ours.
func (t *Term) once(ctx context.Context) error {
	for {
		a := t.mine.next(t.e.clock())
		l, err := t.e.leases.Update(ctx, t.mine.taken(t.last, a, t.e.config.Timing, transitions(t.last)))
		if err == nil {
			t.confirmed(l, a)
			return nil
		}
		if client.Unanswered(err) || client.Unreachable(err) || ctx.Err() != nil {
			return err
		}
		// Refused: it changed, or is gone.
		refusal := err
		if l, err = t.e.leases.Get(ctx, t.e.config.Key); apierrors.IsNotFound(err) {
			return t.recreate(ctx)
		}
		if err != nil {
			return err
		}
		a, own := t.mine.find(l)
		if !own {
			return &takenError{holder(l)}
		}
		// It is still ours: an answer was lost, or a user put a label on it.
		unchanged := l.ResourceVersion == t.last.ResourceVersion
		t.confirmed(l, a)
		if unchanged {
			return refusal // which has another reason
		}
	}
}

// recreate creates a lease that was deleted.
func (t *Term) recreate(ctx context.Context) error {
	a := t.mine.next(t.e.clock())
	key := t.e.config.Key
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	l, err := t.e.leases.Create(ctx, t.mine.taken(l, a, t.e.config.Timing, transitions(t.last)))
	if apierrors.IsAlreadyExists(err) {
		if l, err = t.e.leases.Get(ctx, key); err == nil {
			var own bool
			if a, own = t.mine.find(l); !own {
				return &takenError{holder(l)}
			}
		}
	}
	if err != nil {
		return err
	}
	t.e.log.Warn("the lease was deleted, and has been created again")
	t.confirmed(l, a)
	return nil
}

func (t *Term) confirmed(l *coordinationv1.Lease, a attempt) {
	t.mine.confirm(a)
	t.last = l
	t.hold.confirm(a.sent)
}
