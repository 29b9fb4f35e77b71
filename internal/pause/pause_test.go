// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/pause"
)

func TestAWaitPausesLongerAfterALongLook(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 20 * time.Millisecond, 15 * time.Millisecond: 75 * time.Millisecond, time.Minute: 4 * time.Second} {
		if got := pause.Between(took, 20*time.Millisecond); got != want {
			t.Errorf("after %s it pauses %s, want %s", took, got, want)
		}
	}
}

func TestAPauseEndsAfterItsTimeOrWithItsContext(t *testing.T) {
	for name, test := range map[string]struct {
		context, pause, took time.Duration
		whole                bool
	}{
		"the time is over":       {time.Minute, time.Second, time.Second, true},
		"the context ends first": {time.Second, time.Minute, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), test.context)
				defer cancel()
				began := time.Now()
				if whole := pause.For(ctx, test.pause); whole != test.whole || time.Since(began) != test.took {
					t.Errorf("returned %v after %s, want %v after %s", whole, time.Since(began), test.whole, test.took)
				}
			})
		})
	}
}
