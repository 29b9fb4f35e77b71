// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"math"
	"strings"
	"testing"
	"time"
)

// with returns the defaults, changed.
func with(change func(*Options)) Options {
	o := Defaults()
	change(&o)
	return o
}

func TestARateThatIsNoneGivesNoToken(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN()} {
		got, err := with(func(o *Options) { o.NodeEvictionRate = rate }).complete()
		if err != nil {
			t.Fatal(err)
		}
		b := bucket{tokens: 1, at: time.Unix(0, 0)}
		if b.set(got.rate(zoneNormal, 10), time.Unix(1000, 0)); b.take() {
			t.Errorf("a token at a rate of %g", rate)
		}
	}
}

// As upstream's flags do, the options take every value.
func TestPeriodsOfNoTimeAreTheShortestThatCanBe(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second} {
		got, err := with(func(o *Options) { o.NodeMonitorPeriod, o.NodeMonitorGracePeriod, o.NodeStartupGracePeriod = d, d, d }).complete()
		if err != nil {
			t.Fatal(err)
		}
		if got.NodeMonitorPeriod != time.Millisecond || got.NodeMonitorGracePeriod != 1 || got.NodeStartupGracePeriod != 1 {
			t.Errorf("%s: %+v", d, got)
		}
	}
}

func TestThresholdsOfAnyValueTellZonesThatArePartlyDown(t *testing.T) {
	for _, test := range []struct {
		threshold       float64
		ready, notReady int
		want            zoneState
	}{
		{0.55, 9, 11, zonePartlyDown}, // the share itself is enough
		{0.55, 10, 10, zoneNormal},
		{0, 100, 3, zonePartlyDown},
		{-1, 100, 3, zonePartlyDown},
		{0, 100, 2, zoneNormal},
		{55, 1, 99, zoneNormal},
		{math.NaN(), 1, 99, zoneNormal},
		{55, 0, 99, zoneDown},
	} {
		if got := stateOf(test.ready, test.notReady, test.threshold); got != test.want {
			t.Errorf("%d ready and %d not with %g: %v, want %v", test.ready, test.notReady, test.threshold, got, test.want)
		}
	}
}

func TestNoWorkersAreRefused(t *testing.T) {
	if _, err := (Options{}).complete(); err == nil || !strings.Contains(err.Error(), "0 workers") {
		t.Errorf("complete() = %v, want an error that names the workers", err)
	}
}
