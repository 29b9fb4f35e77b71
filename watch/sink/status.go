// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import "time"

// Status has the counts and the troubles of a Runner, for metrics and for people.
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
	// Trouble is the time since which each attempt has failed; zero if the last one did not fail.
	Trouble time.Time
	// NextTry is when the Runner tries again; zero if it does not wait.
	NextTry time.Time
}

// InTrouble reports whether the last attempt failed.
func (s Status) InTrouble() bool { return !s.Trouble.IsZero() }
