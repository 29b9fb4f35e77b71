// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"math"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/controllers"
)

func TestAFlagRefusesWhatIsBeyondItsBounds(t *testing.T) {
	number := func(n int) controllers.Flag { return controllers.Int("syncs", &n, "") }
	period := func(d time.Duration) controllers.Flag { return controllers.Duration("period", &d, "") }
	rate := func(n float64) controllers.Flag { return controllers.Float("rate", &n, "") }
	for _, test := range []struct {
		flag controllers.Flag
		want string // "" is none
	}{
		{number(-7), ""},
		{number(1).Between(1, 50), ""},
		{number(50).Between(1, 50), ""},
		{number(0).Between(1, 50), "--syncs=0: want 1 to 50"},
		{number(51).Between(1, 50), "--syncs=51: want 1 to 50"},
		{number(1).AtLeast(1), ""},
		{number(0).AtLeast(1), "--syncs=0: want 1 or more"},
		{period(time.Second).AtLeast(int64(time.Second)), ""},
		{period(999 * time.Millisecond).AtLeast(int64(time.Second)), "--period=999ms: want 1s or more"},
		{rate(1).AtLeast(1), ""},
		{rate(0.5).AtLeast(1), "--rate=0.5: want 1 or more"},
		{rate(-0.1).AtLeast(0), "--rate=-0.1: want 0 or more"},
		{rate(0.55).Between(0, 1), ""},
		{rate(1.01).Between(0, 1), "--rate=1.01: want 0 to 1"},
		{rate(math.NaN()).Between(0, 1), "--rate=NaN: want 0 to 1"},
		{period(time.Hour).Between(0, int64(time.Minute)), "--period=1h0m0s: want 0s to 1m0s"},
	} {
		got := ""
		if err := test.flag.Check(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.flag, got, test.want)
		}
	}
}

func TestAFlagIsWrittenAsOnACommandLine(t *testing.T) {
	for want, flag := range map[string]controllers.Flag{
		"--on=false":    controllers.Bool("on", new(false), ""),
		"--n=-3":        controllers.Int("n", new(-3), ""),
		"--rate=0.55":   controllers.Float("rate", new(0.55), ""),
		"--period=1m0s": controllers.Duration("period", new(time.Minute), ""),
		"--run=true":    controllers.Switch("run", ""),
		"--text=a b":    {Name: "text", Into: new("a b")},
	} {
		if got := flag.String(); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
}
