// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestASmallHeapHasHeadroomAndALargeOneDoubles(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live       uint64
		busy, rest int
	}{{0, 1600, 400}, {4 * mb, 400, 100}, {8 * mb, 200, 50}, {16 * mb, 100, 50}, {1000 * mb, 100, 50}} {
		for resting, want := range map[bool]int{false: c.busy, true: c.rest} {
			if got := percentOf(c.live, resting); got != want {
				t.Errorf("GOGC=%d for %d MB, at rest: %t; want %d", got, c.live/mb, resting, want)
			}
		}
	}
}

func gogc() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// It changes GOGC of the process, so it runs beside no other test.
func TestACommandTunesTheCollectorUntilItEnds(t *testing.T) {
	t.Setenv("GOGC", "") // the test may run with one
	before := gogc()
	end := Tune(t.Context())
	small := gogc()
	deadline := time.Now().Add(time.Minute)
	func() {
		large := make([]byte, 256<<20)
		defer runtime.KeepAlive(large)
		for runtime.GC(); gogc() != leastPercent; runtime.GC() {
			if time.Now().After(deadline) {
				t.Fatalf("GOGC=%d with a large heap, want %d", gogc(), leastPercent)
			}
		}
	}()
	for runtime.GC(); gogc() == leastPercent; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("GOGC=%d with a small heap again, want more", gogc())
		}
	}
	end()
	if now := gogc(); small <= leastPercent || now != before {
		t.Errorf("GOGC=%d with a small heap, and %d after the end; want more than %d, and %d", small, now, leastPercent, before)
	}

	t.Setenv("GOGC", "50")
	end = Tune(t.Context())
	defer end()
	if now := gogc(); now != before {
		t.Errorf("GOGC=%d, want %d: the user chooses it", now, before)
	}
}

func TestMemoryIsReturnedOnceTheProcessIsAtRest(t *testing.T) {
	const mb = 1 << 20
	r := idleness{since: restPauses}
	allocated := uint64(0)
	come := func(allocates, garbage uint64) bool {
		allocated += allocates
		_, returns := r.come(heapState{live: 10 * mb, objects: 10*mb + garbage, allocated: allocated})
		return returns
	}
	for i, step := range []struct {
		allocates, garbage uint64
		want               bool
	}{
		{50 * mb, 20 * mb, false}, // a burst
		{50 * mb, 20 * mb, false},
		{0, 20 * mb, false}, // it may go on
		{0, 20 * mb, true},
		{50 * mb, 20 * mb, false}, // another burst
		{0, 20 * mb, false},
		{0, 20 * mb, false}, // the last time was just now
	} {
		if got := come(step.allocates, step.garbage); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	for range int(restPauses/restEvery) - 4 {
		if come(0, 20*mb) {
			t.Error("memory is returned too soon")
		}
	}
	if !come(0, 20*mb) {
		t.Error("memory of the second burst is not returned")
	}
	for range int(restSoon/restEvery) - 1 {
		if come(0, 21*mb) {
			t.Error("much memory is returned too soon")
		}
	}
	if !come(0, 21*mb) {
		t.Error("more than twice what lives is kept for longer")
	}
	r.since = restPauses
	if come(2*mb, 60*mb) || come(3*mb, 60*mb) {
		t.Error("memory is returned while the process allocates much of it")
	}
	if come(1*mb, 60*mb); !come(1*mb, 60*mb) {
		t.Error("a process that allocates little of what it has to return keeps it")
	}
	r.since = restPauses
	if come(0, 4*mb) {
		t.Error("memory is returned for 4 MB")
	}
}

// Heartbeats of many Nodes make garbage in a manager that remembers much.
func TestALargeProcessIsAtRestWhileItAllocatesLittleOfWhatItHas(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		live, allocates uint64
		want            bool
	}{{10 * mb, mb / 4, true}, {10 * mb, mb, false}, {100 * mb, 2 * mb, true}, {100 * mb, 10 * mb, false}} {
		r, allocated, resting := idleness{}, uint64(0), false
		for i := range 5 {
			allocated += c.allocates
			if resting, _ = r.come(heapState{live: c.live, objects: c.live, allocated: allocated}); resting && i < restCalm-1 {
				t.Errorf("%+v: at rest after %d s", c, i+1)
			}
		}
		if resting != c.want {
			t.Errorf("%+v: at rest: %t", c, resting)
		}
	}
}

// It changes GOGC of the process, so it runs beside no other test.
func TestAProcessAtRestHasLessRoomUntilItIsBusy(t *testing.T) {
	p, restore := setPercents()
	defer restore()
	busy := gogc()
	deadline := time.Now().Add(time.Minute)
	for p.rest(true); gogc() >= busy; p.rest(true) { // a collection that has just been may undo it
		if time.Now().After(deadline) {
			t.Fatalf("GOGC=%d at rest, and %d before", gogc(), busy)
		}
	}
	for ; gogc() < busy; runtime.GC() { // as of a burst
		if time.Now().After(deadline) {
			t.Fatalf("GOGC=%d though collections follow each other, want %d", gogc(), busy)
		}
	}
}
