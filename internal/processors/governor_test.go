// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package processors

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"
)

// looks feeds a governor with a share of one processor, and returns what it wants at the end.
func looks(g *governor, n int, share float64) int {
	want := g.now
	for range n {
		want = g.come(time.Duration(share*float64(every)), every, 0)
	}
	return want
}

func TestAProcessThatUsesLittleHasOneProcessorAndABurstHasAll(t *testing.T) {
	g := governor{most: 8, now: 8}
	for i, step := range []struct {
		looks int
		share float64
		want  int
	}{
		{calmLooks - 1, 0.1, 8}, // it may go on
		{1, 0.1, 4},
		{2 * calmLooks, 0.1, 1},
		{1000, 0.7, 1}, // enough
		{1, 0.9, 2},    // a burst
		{1, 1.9, 4},
		{1, 3.9, 8},
		{10, 7.9, 8},             // there are no more
		{calmLooks - 1, 1, 8},    // for a moment
		{1, 3, 8},                // which is over
		{calmLooks - 1, 1, 8},    // it counts anew
		{1, 0.9, 4},              // and one processor needs no eight
		{1000, 1.1, 4},           // but more than two
		{calmLooks, 0.9, 2},      // unlike a part of one
		{1000, 0.6, 2},           // with which one alone would be nearly busy
		{calmLooks, 0.4, 1},      // two fifths are not much
		{10 * calmLooks, 0.0, 1}, // there are no fewer
	} {
		if got := looks(&g, step.looks, step.share); got != step.want {
			t.Errorf("step %d: %d processors after %d looks at %.1f, want %d", i, got, step.looks, step.share, step.want)
		}
	}
	if got := g.come(time.Second, 0, 0); got != 1 {
		t.Errorf("%d processors after no time", got)
	}
}

// Others use the machine: the process gets a third of a processor, and has work for more.
func TestAProcessWhoseGoroutinesWaitHasMoreProcessors(t *testing.T) {
	g := governor{most: 8, now: 1}
	come := func(n, waiting int) (want int) {
		for range n {
			want = g.come(every/3, every, waiting)
		}
		return want
	}
	for i, step := range []struct{ looks, waiting, want int }{
		{calmLooks - 1, 5, 1}, // for a moment
		{1, 0, 1},             // which is over
		{calmLooks - 1, 5, 1}, // it counts anew
		{1, 5, 2},
		{2 * calmLooks, 5, 8},
		{10 * calmLooks, 9, 8}, // there are no more
		{3 * calmLooks, 0, 1},
	} {
		if got := come(step.looks, step.waiting); got != step.want {
			t.Errorf("step %d: %d processors, want %d", i, got, step.want)
		}
	}
}

// A process that knows of a burst does not wait for the next look.
func TestAProcessHasAllProcessorsBeforeABurst(t *testing.T) {
	g := governor{most: 8, now: 1, calm: calmLooks - 1, full: 2}
	if got := g.all(); got != 8 {
		t.Errorf("it has %d processors, want 8", got)
	}
	if got := looks(&g, calmLooks-1, 0.1); got != 8 {
		t.Errorf("it has %d processors before it has been calm for long, want 8", got)
	}
	if got := looks(&g, 1, 0.1); got != 4 {
		t.Errorf("it has %d processors after it has been calm for long, want 4", got)
	}
}

// No share makes the number swing: what was idle with more processors is not busy with fewer.
func TestASteadyLoadHasASteadyNumberOfProcessors(t *testing.T) {
	for load := 0.0; load < 9; load += 0.05 {
		g := governor{most: 8, now: 8}
		settled := looks(&g, 20*calmLooks, load)
		for range 20 * calmLooks {
			if got := looks(&g, 1, load); got != settled {
				t.Fatalf("a load of %.2f has %d processors, and then %d", load, settled, got)
			}
		}
	}
}

// It changes GOMAXPROCS of the process, so it runs beside no other test.
func TestTheProcessHasFewerProcessorsWhileItWaits(t *testing.T) {
	if _, ok := cpuTime(); !ok {
		t.Skip("this system does not say what a process uses")
	}
	t.Setenv("GOMAXPROCS", "1") // restores the variable
	if err := os.Unsetenv("GOMAXPROCS"); err != nil {
		t.Fatal(err)
	}
	runtime.SetDefaultGOMAXPROCS()
	before := runtime.GOMAXPROCS(0)
	if before == 1 {
		t.Skip("there is one processor")
	}
	burst := make(chan struct{})
	end := Tune(t.Context(), burst)
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(every) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d processors", what, runtime.GOMAXPROCS(0))
			}
		}
	}
	await("at rest", func() bool { return runtime.GOMAXPROCS(0) < before })
	close(burst)
	await("before a burst", func() bool { return runtime.GOMAXPROCS(0) == before })
	await("at rest again", func() bool { return runtime.GOMAXPROCS(0) < before })
	ctx, stop := context.WithCancel(t.Context())
	for range 4 * before {
		go func() {
			for ctx.Err() == nil { // it is to use a processor
			}
		}()
	}
	await("in a burst", func() bool { return runtime.GOMAXPROCS(0) == before })
	stop()
	end()
	if now := runtime.GOMAXPROCS(0); now != before {
		t.Errorf("%d processors at the end, want %d", now, before)
	}

	t.Setenv("GOMAXPROCS", "2")
	Tune(t.Context(), nil)() // ends at once: it has not begun
}
