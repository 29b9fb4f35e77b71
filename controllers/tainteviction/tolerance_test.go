// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

const forever = -1

// taint returns a NoExecute taint without value.
func taint(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute}
}

// tolerate returns a toleration of a key for some seconds, or forever.
func tolerate(key string, seconds int64) corev1.Toleration {
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	if seconds != forever {
		t.TolerationSeconds = &seconds
	}
	return t
}

func TestHowLongATaintIsTolerated(t *testing.T) {
	valued := taint("a")
	valued.Value = "x"
	equal := tolerate("a", 5)
	equal.Operator, equal.Value = corev1.TolerationOpEqual, "x"
	noSchedule := tolerate("a", forever)
	noSchedule.Effect = corev1.TaintEffectNoSchedule
	anyEffect := tolerate("a", 7)
	anyEffect.Effect = ""
	for _, c := range []struct {
		name        string
		tolerations []corev1.Toleration
		taint       corev1.Taint
		want        time.Duration // forever: no end
	}{
		{"by nobody", nil, taint("a"), 0},
		{"by a toleration of something else", []corev1.Toleration{tolerate("b", forever)}, taint("a"), 0},
		{"for ever", []corev1.Toleration{tolerate("a", forever)}, taint("a"), forever},
		{"for a time", []corev1.Toleration{tolerate("a", 300)}, taint("a"), 300 * time.Second},
		{"for longer than a duration", []corev1.Toleration{tolerate("a", 9_999_999_999)}, taint("a"), math.MaxInt64},
		{"for no time", []corev1.Toleration{tolerate("a", 0)}, taint("a"), 0},
		{"for less than no time", []corev1.Toleration{tolerate("a", -10)}, taint("a"), 0},
		{"the first that is about it counts", []corev1.Toleration{tolerate("b", 1), tolerate("a", 60), tolerate("a", 30)}, taint("a"), time.Minute},
		{"by a Pod that tolerates everything", []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, taint("a"), forever},
		{"by its value", []corev1.Toleration{equal}, valued, 5 * time.Second},
		{"not by another value", []corev1.Toleration{equal}, taint("a"), 0},
		{"not by one of another effect", []corev1.Toleration{noSchedule}, taint("a"), 0},
		{"by one of any effect", []corev1.Toleration{anyEffect}, taint("a"), 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, bounded := tolerated(c.tolerations, &c.taint)
			if !bounded {
				got = forever
			}
			if got != c.want {
				t.Errorf("tolerated for %v, want %v", got, c.want)
			}
		})
	}
}

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func TestTheShortestTolerationDecides(t *testing.T) {
	var c clock
	deadline, bounded := c.look([]corev1.Toleration{tolerate("a", 60), tolerate("b", 20), tolerate("c", forever)}, []corev1.Taint{taint("a"), taint("b"), taint("c")}, noon)
	if !bounded || deadline != noon.Add(20*time.Second) {
		t.Errorf("deadline %v %t", deadline, bounded)
	}
}

func TestATaintThatIsNotToleratedDecidesAtOnce(t *testing.T) {
	var c clock
	deadline, bounded := c.look([]corev1.Toleration{tolerate("a", forever)}, []corev1.Taint{taint("a"), taint("b")}, noon)
	if !bounded || deadline != noon {
		t.Errorf("deadline %v %t, want now", deadline, bounded)
	}
}

func TestEachTaintHasItsOwnTime(t *testing.T) {
	var c clock
	tolerations := []corev1.Toleration{tolerate("a", 60), tolerate("b", 10)}
	c.look(tolerations, []corev1.Taint{taint("a")}, noon)
	later := noon.Add(30 * time.Second)
	if deadline, _ := c.look(tolerations, []corev1.Taint{taint("a"), taint("b")}, later); deadline != later.Add(10*time.Second) {
		t.Errorf("with a second taint after 30 s the deadline is after %v, want 40 s", deadline.Sub(noon))
	}
	if deadline, _ := c.look(tolerations, []corev1.Taint{taint("a")}, later.Add(time.Second)); deadline != noon.Add(time.Minute) {
		t.Errorf("without the second taint the deadline is after %v, want a minute", deadline.Sub(noon))
	}
}

func TestTimeRunsOnFromNotReadyToUnreachable(t *testing.T) {
	var c clock
	tolerations := []corev1.Toleration{tolerate(corev1.TaintNodeNotReady, 300), tolerate(corev1.TaintNodeUnreachable, 300)}
	c.look(tolerations, []corev1.Taint{taint(corev1.TaintNodeNotReady)}, noon)
	if deadline, _ := c.look(tolerations, []corev1.Taint{taint(corev1.TaintNodeUnreachable)}, noon.Add(time.Minute)); deadline != noon.Add(5*time.Minute) {
		t.Errorf("the deadline is after %v, want 5m", deadline.Sub(noon))
	}
}

func TestTimeStartsAnewWithATaintThatComesBack(t *testing.T) {
	var c clock
	tolerations := []corev1.Toleration{tolerate("a", 60)}
	c.look(tolerations, []corev1.Taint{taint("a")}, noon)
	if _, bounded := c.look(tolerations, nil, noon.Add(30*time.Second)); bounded {
		t.Error("without a taint there is a deadline")
	}
	if deadline, _ := c.look(tolerations, []corev1.Taint{taint("a")}, noon.Add(40*time.Second)); deadline != noon.Add(100*time.Second) {
		t.Errorf("the deadline is after %v, want 1m40s", deadline.Sub(noon))
	}
}

// However often it is looked at, the deadline is the earliest of what each taint alone
// would give, and never moves while nothing changes.
func TestLookingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SampledFrom([]string{"a", "b", "c", corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable})
		var taints []corev1.Taint
		for _, key := range rapid.SliceOfNDistinct(keys, 1, 3, rapid.ID).Draw(t, "taints") {
			taints = append(taints, taint(key))
		}
		var tolerations []corev1.Toleration
		for _, key := range rapid.SliceOfN(keys, 0, 5).Draw(t, "tolerated") {
			tolerations = append(tolerations, tolerate(key, rapid.Int64Range(forever, 100).Draw(t, "seconds")))
		}
		var c clock
		first, bounded := c.look(tolerations, taints, noon)
		want := time.Time{}
		for i := range taints {
			if d, ends := tolerated(tolerations, &taints[i]); ends && (want.IsZero() || noon.Add(d).Before(want)) {
				want = noon.Add(d)
			}
		}
		if bounded == want.IsZero() || bounded && !first.Equal(want) {
			t.Fatalf("deadline %v %t, want %v", first, bounded, want)
		}
		for range rapid.IntRange(1, 5).Draw(t, "looks") {
			again, _ := c.look(tolerations, taints, noon.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "later"))*time.Second))
			if bounded && !again.Equal(first) {
				t.Fatalf("the deadline moved from %v to %v", first, again)
			}
		}
	})
}
