// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"strings"
	"testing"
	"time"
)

func TestTheZeroOptionsAreUpstreams(t *testing.T) {
	got, err := Options{}.complete()
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		Workers: 8, NodeMonitorPeriod: 5 * time.Second, NodeMonitorGracePeriod: 50 * time.Second, NodeStartupGracePeriod: time.Minute,
		NodeEvictionRate: 0.1, SecondaryNodeEvictionRate: 0.01, LargeClusterSizeThreshold: 50, UnhealthyZoneThreshold: 0.55,
	}
	if got != want {
		t.Errorf("defaults %+v, want %+v", got, want)
	}
}

func TestARateBelowZeroIsNone(t *testing.T) {
	got, err := Options{NodeEvictionRate: -1}.complete()
	if err != nil {
		t.Fatal(err)
	}
	b := bucket{tokens: 1, at: time.Unix(0, 0)}
	if b.set(got.rate(zoneNormal, 10), time.Unix(1000, 0)); b.take() {
		t.Error("a token at a rate below zero")
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for text, o := range map[string]Options{
		"-1 workers":               {Workers: -1},
		"a period below zero":      {NodeMonitorPeriod: -time.Second},
		"large zones from -1":      {LargeClusterSizeThreshold: -1},
		"a share, between 0 and 1": {UnhealthyZoneThreshold: 55},
		"a monitor period of 4ns":  {NodeMonitorPeriod: 4},
	} {
		if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: error %v, want one that says %q", o, err, text)
		}
	}
}
