// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// instant is a moment on both clocks of a process.
type instant struct {
	mono time.Duration // since some moment; it cannot be set, but it may stop while the machine sleeps
	wall time.Time     // runs while the machine sleeps, but can be set
}

// clock returns the present. Tests have one that jumps.
type clock func() instant

func systemClock() clock {
	began := time.Now()
	return func() instant {
		now := time.Now()
		return instant{mono: now.Sub(began), wall: now.Round(0)} // without its monotonic part
	}
}

// atMost is the longest time that may have passed since: what a holder must assume.
func (i instant) atMost(since instant) time.Duration {
	return max(i.mono-since.mono, i.wall.Sub(since.wall))
}

// atLeast is a time that has certainly passed since: what others must wait for. The wall
// clock is not used for it, because it may be set forward.
func (i instant) atLeast(since instant) time.Duration { return i.mono - since.mono }
