// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestARateIsThatOfTheLastHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 10
		var m meter
		near := func(when string, want float64) {
			t.Helper()
			if got := m.read(); math.Abs(got-want) > want/20 {
				t.Errorf("%s: %.2f a second, want about %.2f", when, got, want)
			}
		}
		total := uint64(0)
		for range 300 {
			time.Sleep(time.Second)
			total += each
			m.note(total)
			m.note(total) // nothing more has happened
		}
		near("after five minutes", each)
		time.Sleep(meterMemory)
		near("after half a minute of silence", each/math.E)
	})
}
