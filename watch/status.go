// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"sync/atomic"
	"time"
)

// Status is how a Watch fares.
type Status struct {
	Seen   uint64 // changes that were seen
	Hidden uint64 // of them, those that were not published
	Told   uint64 // events that were published
	Failed uint64 // objects that could not be decoded, and conditions that could not be decided
	// Lag is how long the last event took from when its change was seen to when it was
	// published. Merged events do not count: they wait on purpose.
	Lag time.Duration
	// Followed is how many kinds are followed, one for each namespace if some are named.
	Followed int
	// Troubles are the kinds that cannot be followed now, and why.
	Troubles map[string]error
}

// counts are the figures of Status.
type counts struct {
	seen, hidden, told, failed atomic.Uint64
	lag                        atomic.Int64 // nanoseconds
}

// Status returns how the Watch fares. It is safe for concurrent use.
func (w *Watch) Status() Status {
	s := Status{
		Seen: w.counts.seen.Load(), Hidden: w.counts.hidden.Load(), Told: w.counts.told.Load(), Failed: w.counts.failed.Load(),
		Lag: time.Duration(w.counts.lag.Load()), Troubles: map[string]error{},
	}
	for _, f := range w.all() {
		s.Followed++
		if err := f.informer.Trouble(); err != nil {
			s.Troubles[f.name] = err
		}
	}
	return s
}
