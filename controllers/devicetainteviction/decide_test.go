// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devicetainteviction

import (
	"math"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

func TestHowLongADeviceTaintIsTolerated(t *testing.T) {
	taint := &resourcev1.DeviceTaint{Key: "a", Effect: resourcev1.DeviceTaintEffectNoExecute}
	of := func(seconds ...int64) (all []resourcev1.DeviceToleration) {
		for _, s := range seconds {
			all = append(all, resourcev1.DeviceToleration{Key: "a", Operator: resourcev1.DeviceTolerationOpExists, TolerationSeconds: &s})
		}
		return all
	}
	for _, test := range []struct {
		name        string
		tolerations []resourcev1.DeviceToleration
		want        time.Duration
		forever     bool
	}{
		{"by nobody", nil, 0, false},
		{"for a time", of(300), 5 * time.Minute, false},
		{"the shortest counts", of(300, 60), time.Minute, false},
		{"for less than no time", of(-10), 0, false},
		{"for longer than a duration", of(9_999_999_999), math.MaxInt64, false},
		{"for ever", append(of(60), resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists}), 0, true},
	} {
		if got, forever := tolerance(test.tolerations, taint); got != test.want || forever != test.forever {
			t.Errorf("%s: %s, for ever: %t; want %s, %t", test.name, got, forever, test.want, test.forever)
		}
	}
}
