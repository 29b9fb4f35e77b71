// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package worlds

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errTest = errors.New("no answer")

func TestAnOperationStandsInTheWayOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New[string, int](Options{})
		if turn := w.Begin("disk", "attach", time.Minute); turn.State != Free {
			t.Fatalf("the first turn is %v", turn)
		}
		if turn := w.Begin("disk", "attach", time.Minute); turn.State != Busy || turn.Operation.Name != "attach" {
			t.Errorf("the turn of the same operation is %v", turn)
		}
		if turn := w.Begin("disk", "detach", time.Minute); turn.State != Busy {
			t.Errorf("the turn of the opposite operation is %v", turn)
		}
		if turn := w.Begin("other", "detach", time.Minute); turn.State != Free {
			t.Errorf("the turn of another key is %v", turn)
		}
		if w.End("disk", "detach", nil) {
			t.Error("an operation that did not begin has ended")
		}
		if !w.End("disk", "attach", nil) || w.End("disk", "attach", errTest) {
			t.Error("an operation does not end once")
		}
		if turn := w.Begin("disk", "detach", time.Minute); turn.State != Free {
			t.Errorf("after the end the turn is %v", turn)
		}
	})
}

// The waits are upstream's: 500 ms, doubling up to 2 minutes and 2 seconds.
func TestAFailureDoublesTheWaitAndAnEventDoesNotShortenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New[string, int](Options{})
		var waits []time.Duration
		for range 10 {
			if turn := w.Begin("disk", "attach", 0); turn.State != Free {
				t.Fatalf("the turn is %v", turn)
			}
			w.End("disk", "attach", NotDone(errTest))
			turn := w.May("disk", "attach")
			if turn.State != BackingOff || !errors.Is(turn.Operation.Err, errTest) {
				t.Fatalf("after a failure the turn is %v", turn)
			}
			wait := time.Until(turn.Operation.Until)
			waits = append(waits, wait)
			time.Sleep(wait - 1)
			if turn := w.Begin("disk", "attach", 0); turn.State != BackingOff {
				t.Fatalf("before the end of the wait the turn is %v", turn)
			}
			time.Sleep(1)
		}
		if want := []time.Duration{500e6, 1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 64e9, 122e9, 122e9}; !slices.Equal(waits, want) {
			t.Errorf("the waits are %v, want %v", waits, want)
		}
		// The opposite operation does not wait for that, and ends the row of failures.
		if turn := w.Begin("disk", "detach", 0); turn.State != Free {
			t.Fatalf("the turn of the opposite operation is %v", turn)
		}
		w.End("disk", "detach", nil)
		w.Begin("disk", "attach", 0)
		w.End("disk", "attach", NotDone(errTest))
		if wait := time.Until(w.May("disk", "attach").Operation.Until); wait != 500*time.Millisecond {
			t.Errorf("after a success the wait is %s", wait)
		}
	})
}

func TestAnUncertainKeyIsObservedBeforeTheOppositeOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New[string, int](Options{})
		w.SawNothing("disk")
		w.Begin("disk", "attach", 0)
		w.End("disk", "attach", errTest)
		if _, k := w.Actual("disk"); k != Uncertain {
			t.Errorf("the key is %s", k)
		}
		if turn := w.Begin("disk", "detach", 0); turn.State != Unclear {
			t.Errorf("the turn of the opposite operation is %v", turn)
		}
		time.Sleep(time.Minute)
		if turn := w.May("disk", "attach"); turn.State != Free {
			t.Errorf("the turn of the same operation is %v", turn)
		}
		w.Saw("disk", 1)
		if turn := w.Begin("disk", "detach", 0); turn.State != Free {
			t.Errorf("after an observation the turn is %v", turn)
		}
	})
}

func TestAnOperationThatDoesNotEndInTimeIsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New[string, int](Options{})
		w.SawNothing("disk")
		w.Begin("disk", "attach", time.Minute)
		time.Sleep(time.Minute)
		if turn := w.May("disk", "detach"); turn.State != Busy {
			t.Errorf("the turn is %v", turn)
		}
		if turn := w.Begin("disk", "detach", time.Minute); turn.State != Unclear {
			t.Errorf("the turn is %v", turn)
		}
		if w.End("disk", "attach", nil) {
			t.Error("an answer that came late has ended something")
		}
	})
}

func TestRunRecordsWhatTheOperationReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New[string, int](Options{})
		run := func(do func(context.Context) (*int, error)) (Turn, error) {
			return w.Run(t.Context(), "disk", "resize", time.Minute, do)
		}
		if _, err := run(func(context.Context) (*int, error) { return new(7), nil }); err != nil {
			t.Fatal(err)
		}
		if value, k := w.Actual("disk"); value != 7 || k != Present {
			t.Errorf("after a success: %d, %s", value, k)
		}
		_, err := run(func(ctx context.Context) (*int, error) { <-ctx.Done(); return nil, ctx.Err() })
		if value, k := w.Actual("disk"); value != 7 || k != Uncertain || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after a timeout: %d, %s, %v", value, k, err)
		}
		if turn, err := run(nil); turn.State != BackingOff || err != nil {
			t.Errorf("after a timeout the turn is %v, %v", turn, err)
		}
		w.Saw("disk", 8)
		time.Sleep(time.Minute)
		_, err = run(func(context.Context) (*int, error) { return nil, NotDone(errTest) })
		if value, k := w.Actual("disk"); value != 8 || k != Present || !errors.Is(err, errTest) {
			t.Errorf("after a failure: %d, %s, %v", value, k, err)
		}
		time.Sleep(time.Minute)
		func() {
			defer func() { _ = recover() }()
			_, _ = run(func(context.Context) (*int, error) { panic("no") })
		}()
		if _, k := w.Actual("disk"); k != Uncertain {
			t.Errorf("after a panic the key is %s", k)
		}
		if _, running := w.Running("disk"); running {
			t.Error("after a panic the operation is in progress")
		}
	})
}

func TestOperationsAreShownWithTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New[string, int](Options{})
		w.SawNothing("a")
		w.Begin("a", "attach", time.Minute)
		w.End("a", "attach", NotDone(errTest))
		time.Sleep(100 * time.Millisecond)
		w.Begin("b", "detach", time.Minute)
		w.Saw("c", 1)
		time.Sleep(100 * time.Millisecond)
		got := strings.Join(w.Lines(5), "\n")
		const want = "a (absent): attach has failed 1 times in a row and may be tried again in 300ms: no answer\n" +
			"b (unknown): detach in progress for 100ms, for at most 1m0s"
		if got != want {
			t.Errorf("the lines are\n%s\nwant\n%s", got, want)
		}
		if got := w.Lines(1); len(got) != 2 || got[1] != "and 1 more" {
			t.Errorf("one line of two is %q", got)
		}
	})
}

func TestAKeyThatIsForgottenIsUnknown(t *testing.T) {
	w := New[string, int](Options{})
	w.Saw("disk", 1)
	w.Begin("disk", "attach", 0)
	w.End("disk", "attach", errTest)
	w.Forget("disk")
	if value, k := w.Actual("disk"); value != 0 || k != Unknown || len(w.Keys()) != 0 || w.May("disk", "attach").State != Free {
		t.Errorf("the key is %d, %s, and its turn is %v", value, k, w.May("disk", "attach"))
	}
}
