// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import "time"

// Status is how a Runner fares, for metrics and for people.
type Status struct {
	Name string
	// Sent, Refused and Dropped are events since the Runner was made: taken by the
	// receiver, refused by it for good, and given up for their age.
	Sent, Refused, Dropped uint64
	// Retried is how many attempts failed and were, or will be, made again.
	Retried uint64
	// Waiting is how many events are in the outbox, and Oldest when the first of them was
	// seen; zero if there is none.
	Waiting int
	Oldest  time.Time
	// LastSent is when an event was last taken.
	LastSent time.Time
	// LastError is the error of the last attempt that failed, or of the last refusal. It
	// stays after the trouble is over.
	LastError string
	// Trouble is since when each attempt has failed. It is zero if the last one did not.
	Trouble time.Time
	// NextTry is when it is tried again; zero if nothing is waited for.
	NextTry time.Time
}

// InTrouble reports whether the last attempt failed.
func (s Status) InTrouble() bool { return !s.Trouble.IsZero() }
