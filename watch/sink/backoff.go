// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"math/rand/v2"
	"time"
)

// jitter returns a wait between half of d and d, so that many who failed together do not
// come back together.
func jitter(d time.Duration) time.Duration {
	if d < 2 {
		return d
	}
	return d/2 + rand.N(d/2+1)
}

// backoff returns the wait after a number of failures in a row, 1 and more.
func backoff(d Delivery, failures int) time.Duration {
	wait := d.MinWait
	for range failures - 1 {
		if wait >= d.MaxWait/2 {
			return d.MaxWait
		}
		wait *= 2
	}
	return min(wait, d.MaxWait)
}
