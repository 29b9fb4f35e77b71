// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// ErrReleased is the cause of a term that Release ended.
var ErrReleased = errReleased

// TakenError is the cause of a term whose lease another process has.
type TakenError = takenError

// Holder returns the process that has the lease.
func (e *takenError) Holder() string { return e.holder }

// Shift adds to the clocks of an elector from now on: what a machine that slept, a process
// that was stopped, or somebody who sets the clock does to them.
func Shift(e *Elector, mono, wall func() time.Duration) {
	before := e.clock
	e.clock = func() instant {
		now := before()
		return instant{mono: now.mono + mono(), wall: now.wall.Add(wall())}
	}
}
