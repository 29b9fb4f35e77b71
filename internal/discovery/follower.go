// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/pause"
)

// Follower discovers which kinds a server serves, again and again. Make one with
// [NewFollower].
type Follower struct {
	discover    func(context.Context) ([]client.Served, error)
	log         *slog.Logger
	soon, every time.Duration
	asked       chan struct{}

	set     Set    // used by First and Run, one at a time
	trouble string // as it was logged last
}

// NewFollower returns a Follower. discover asks the server, as [client.Client.Discover]
// does. every is the time between two discoveries. In First, and after a call of
// Soon, the pauses grow from soon to every: a server takes a while to serve what has been
// defined.
func NewFollower(discover func(context.Context) ([]client.Served, error), log *slog.Logger, soon, every time.Duration) *Follower {
	return &Follower{discover: discover, log: log, soon: soon, every: every, asked: make(chan struct{}, 1)}
}

// Soon requests a discovery before the next one is due. It never blocks and is safe for
// concurrent use.
func (f *Follower) Soon() {
	select {
	case f.asked <- struct{}{}:
	default:
	}
}

// First discovers until enough returns true for the kinds that were found. It returns false
// if ctx ended first.
func (f *Follower) First(ctx context.Context, enough func(context.Context, Set) bool) bool {
	for wait := f.soon; ; wait = min(2*wait, f.every) {
		if set, ok := f.look(ctx); ok && enough(ctx, set) {
			return true
		}
		if !pause.For(ctx, wait) {
			return false
		}
	}
}

// Run discovers until ctx ends, and calls each with the kinds after each discovery that says
// something.
func (f *Follower) Run(ctx context.Context, each func(context.Context, Set)) {
	pause := f.every
	next := time.Now().Add(pause)
	for {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
			if set, ok := f.look(ctx); ok {
				each(ctx, set)
			}
			pause = min(2*pause, f.every)
			next = time.Now().Add(pause)
		case <-f.asked:
			pause = f.soon
			if soon := time.Now().Add(pause); soon.Before(next) {
				next = soon
			}
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// look discovers once. ok is false if the server said nothing about kinds.
func (f *Follower) look(ctx context.Context) (set Set, ok bool) {
	found, err := Ask(ctx, f.discover)
	if ctx.Err() != nil {
		return Set{}, false
	}
	f.say(err)
	f.set, ok = f.set.With(found, err)
	return f.set, ok
}

// say logs an error of discovery, once.
func (f *Follower) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == f.trouble {
		return
	}
	if f.trouble = text; err == nil {
		f.log.Warn("all kinds are known again") // at the level of the trouble
		return
	}
	f.log.Warn("not all kinds are known; those that were known before are still watched", "error", err)
}
