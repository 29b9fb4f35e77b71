// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podlimits_test

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/controller/podlimits"
)

// percentOf is the exact percentage of a number.
func percentOf(percent, total int32) *big.Rat {
	return new(big.Rat).Mul(big.NewRat(int64(percent), 100), new(big.Rat).SetInt64(int64(total)))
}

// isRounded reports whether n is the integer next to exact, above it or below it.
func isRounded(n int32, exact *big.Rat, up bool) bool {
	distance := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(n)), exact)
	if !up {
		distance.Neg(distance)
	}
	return distance.Sign() >= 0 && distance.Cmp(big.NewRat(1, 1)) < 0
}

func TestAPercentageIsRoundedToTheNextNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int32Range(0, 1<<24).Draw(t, "total")
		percent := rapid.Int32Range(0, 100).Draw(t, "percent")
		text := fmt.Sprintf("%d%%", percent)
		d, err := podlimits.Deployment(deployment(total, text, text))
		if err != nil {
			t.Fatal(err)
		}
		if !isRounded(d.Surge, percentOf(percent, total), true) {
			t.Errorf("a surge of %s of %d is %d", text, total, d.Surge)
		}
		if d.Surge > 0 && !isRounded(d.Unavailable, percentOf(percent, total), false) {
			t.Errorf("%s of %d unavailable are %d", text, total, d.Unavailable)
		}
		b, err := podlimits.PodDisruptionBudget(budget("", text), total)
		if err != nil || !isRounded(b.Healthy, percentOf(percent, total), true) {
			t.Errorf("%s of %d available are %d, %v", text, total, b.Healthy, err)
		}
	})
}

// What a rollout needs: it can move, and it cannot leave its limits.
func TestARolloutCanMoveWithinItsLimits(t *testing.T) {
	field := rapid.OneOf(
		rapid.Map(rapid.Int32Min(0), func(n int32) string { return fmt.Sprint(n) }),
		rapid.Map(rapid.Int32Range(0, 300), func(n int32) string { return fmt.Sprintf("%d%%", n) }),
		rapid.Just(""),
	)
	rapid.Check(t, func(t *rapid.T) {
		desired := rapid.Int32Min(0).Draw(t, "desired")
		surge, unavailable := field.Draw(t, "surge"), field.Draw(t, "unavailable")
		for kind, of := range map[string]func() (podlimits.Limits, error){
			"Deployment":  func() (podlimits.Limits, error) { return podlimits.Deployment(deployment(desired, surge, unavailable)) },
			"DaemonSet":   func() (podlimits.Limits, error) { return podlimits.DaemonSet(daemonSet(surge, unavailable), desired) },
			"StatefulSet": func() (podlimits.Limits, error) { return podlimits.StatefulSet(statefulSet(desired, unavailable, nil)) },
		} {
			l, err := of()
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if l.Desired != desired || l.Least() < 0 || l.Least() > desired || l.Most() < desired {
				t.Errorf("%s: %+v: %d to %d Pods", kind, l, l.Least(), l.Most())
			}
			if desired > 0 && l.Surge == 0 && l.Unavailable == 0 {
				t.Errorf("%s: %+v: no Pod can be replaced", kind, l)
			}
		}
	})
}

// Evictions one after the other never leave fewer Pods healthy than the budget wants.
func TestABudgetIsNotExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int32Range(0, 1000).Draw(t, "total")
		healthy := rapid.Int32Range(0, total).Draw(t, "healthy")
		unavailable := fmt.Sprint(rapid.Int32Range(0, 1000).Draw(t, "unavailable"))
		if rapid.Bool().Draw(t, "percent") {
			unavailable += "%"
		}
		b, err := podlimits.PodDisruptionBudget(budget(unavailable, ""), total)
		if err != nil {
			t.Fatal(err)
		}
		allowed := b.Allowed(healthy)
		if allowed < 0 || allowed > healthy || allowed > 0 && healthy-allowed < b.Healthy {
			t.Errorf("%+v allows %d of %d", b, allowed, healthy)
		}
		if after := b.Allowed(healthy - allowed); after != 0 {
			t.Errorf("%+v allows %d of %d, and %d more after those", b, allowed, healthy, after)
		}
	})
}
