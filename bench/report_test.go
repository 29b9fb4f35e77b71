// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestLineSaysRatioAndVerdict(t *testing.T) {
	for _, c := range []struct {
		m    measure
		want string
	}{
		{measure{name: "a", unit: "MB", aim: aim{most: 0.5}, ours: []float64{3, 1, 2}, theirs: []float64{4}}, "setpoint=2.00MB peer=4.00MB ratio=0.50 aim=≤0.50x ok"},
		{measure{name: "a", aim: aim{least: 1}, ours: []float64{1, 2}, theirs: []float64{2, 3}}, "setpoint=1.50 peer=2.50 ratio=0.60 aim=≥1.00x short"},
		{measure{name: "a", unit: "MB", aim: aim{value: 50}, ours: []float64{51}, theirs: []float64{100}}, "setpoint=51.00MB peer=100MB ratio=0.51 aim=≤50 short"},
		{measure{name: "a", unit: "B", aim: aim{most: 1. / 15}, ours: []float64{650}, theirs: []float64{10000}}, "setpoint=650B peer=10000B ratio=0.065 aim=≤0.067x ok"},
		{measure{name: "a", unit: "ms", ours: []float64{3}, theirs: []float64{6}}, "setpoint=3.00ms peer=6.00ms ratio=0.50 aim=none told"},
		{measure{name: "a", aim: aim{least: 4}, ours: []float64{3}}, "setpoint=3.00 peer=none ratio=none aim=≥4.00x told"},
		{measure{name: "a", aim: aim{none: true}, ours: []float64{0}, theirs: []float64{2}}, "setpoint=0.00 peer=2.00 ratio=0 aim=0 ok"},
		{measure{name: "a", aim: aim{none: true}, ours: []float64{1}}, "setpoint=1.00 peer=none ratio=none aim=0 short"},
		{measure{name: "a", aim: aim{value: 4}, ours: []float64{3}}, "setpoint=3.00 peer=none ratio=none aim=≤4 ok"},
	} {
		var out strings.Builder
		c.m.print(&out, false)
		if got := strings.Join(strings.Fields(out.String())[1:], " "); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
