// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package seconds_test

import (
	"math"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/seconds"
)

func TestANumberThatDoesNotFitIsTheNearestDuration(t *testing.T) {
	for n, want := range map[int64]time.Duration{
		0: 0, 1: time.Second, -1: -time.Second, 9_223_372_036: 9_223_372_036 * time.Second,
		9_223_372_037: math.MaxInt64, math.MaxInt64: math.MaxInt64, -9_223_372_036: -9_223_372_036 * time.Second,
		-9_223_372_037: math.MinInt64, math.MinInt64: math.MinInt64,
	} {
		if got := seconds.Duration(n); got != want {
			t.Errorf("%d seconds are %d ns, want %d", n, got, want)
		}
	}
}
