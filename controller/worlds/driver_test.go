// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package worlds

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controller"
)

// shop is a world of things with sizes: a program outside, which fails in all ways.
type shop struct {
	t *testing.T

	mu       sync.Mutex
	things   map[string]int // how large they are
	wanted   map[string]int
	under    map[string]bool // an operation is in progress
	doubtful map[string]string
	chance   *rand.Rand
	faults   bool
	calls    int
}

// op carries out one operation. By chance it fails before or after its change.
func (s *shop) op(key, name string, change func()) func(context.Context) (*int, error) {
	return func(ctx context.Context) (*int, error) {
		s.mu.Lock()
		s.calls++
		if s.under[key] {
			s.t.Errorf("two operations of %s at once", key)
		}
		if before := s.doubtful[key]; before != "" && before != name {
			s.t.Errorf("%s of %s after %s, of which nothing is known", name, key, before)
		}
		s.under[key] = true
		luck := 9
		if s.faults {
			luck = s.chance.IntN(10)
		}
		wait := time.Duration(s.chance.IntN(3)) * time.Second
		s.mu.Unlock()
		time.Sleep(wait)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.under[key] = false
		if luck == 0 {
			return nil, NotDone(errTest)
		}
		if luck > 1 {
			change()
		}
		if luck < 4 { // it was done or not, and no answer comes
			s.doubtful[key] = name
			return nil, errTest
		}
		delete(s.doubtful, key)
		if size, ok := s.things[key]; ok {
			return &size, nil
		}
		return nil, nil
	}
}

func (s *shop) driver(w *World[string, int]) Driver[string, int, int] {
	read := func(of map[string]int, key string) *int {
		if size, ok := of[key]; ok {
			return &size
		}
		return nil
	}
	return Driver[string, int, int]{
		World: w,
		Desired: func(_ context.Context, key string) (*int, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return read(s.wanted, key), nil
		},
		Observe: func(_ context.Context, key string) (*int, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.faults && s.chance.IntN(5) == 0 {
				return nil, errTest
			}
			delete(s.doubtful, key)
			return read(s.things, key), nil
		},
		Next: func(key string, desired, actual *int) *Step[int] {
			switch {
			case desired == nil && actual != nil:
				return &Step[int]{Name: "remove", Do: s.op(key, "remove", func() { delete(s.things, key) })}
			case desired != nil && actual == nil:
				size := *desired
				return &Step[int]{Name: "create", Do: s.op(key, "create", func() { s.things[key] = size })}
			case desired != nil && *desired != *actual:
				size := *desired
				return &Step[int]{Name: "resize", Do: s.op(key, "resize", func() { s.things[key] = size })}
			}
			return nil
		},
		Recheck: time.Hour,
	}
}

// Random histories of what is wanted, with a world that fails before and after its changes: there
// are never two operations of a key at once, an uncertain one is observed before another one, and
// in the end everything is as desired.
func TestEveryThingBecomesAsDesiredWhateverFails(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			s := &shop{
				t: t, things: map[string]int{"old": 3}, wanted: map[string]int{}, under: map[string]bool{}, doubtful: map[string]string{},
				chance: rand.New(rand.NewPCG(seed, 0)), faults: true,
			}
			w := New[string, int](Options{First: time.Second, Most: 10 * time.Second})
			loop := controller.NewKeyed("shop", s.driver(w).Reconcile, controller.Workers(4), controller.Shows("operations", w.Lines))
			queue := loop.Queue()
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() {
				if err := loop.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			queue.Add("old")
			for range 60 {
				key := fmt.Sprint("thing-", s.number(6))
				s.mu.Lock()
				if s.chance.IntN(3) == 0 {
					delete(s.wanted, key)
				} else {
					s.wanted[key] = s.chance.IntN(3)
				}
				s.mu.Unlock()
				queue.Add(key)
				time.Sleep(time.Duration(s.number(2000)) * time.Millisecond)
			}
			s.mu.Lock()
			s.faults = false
			s.mu.Unlock()
			time.Sleep(5 * time.Minute)
			s.mu.Lock()
			if fmt.Sprint(s.things) != fmt.Sprint(s.wanted) {
				t.Errorf("seed %d: there are %v, want %v; %v", seed, s.things, s.wanted, w.Lines(10))
			}
			if len(w.Keys()) != len(s.wanted) {
				t.Errorf("seed %d: the world remembers %q, and wanted is %v", seed, w.Keys(), s.wanted)
			}
			calls := s.calls
			s.mu.Unlock()
			time.Sleep(30 * time.Minute)
			if s.calls != calls {
				t.Errorf("seed %d: %d operations although everything is as desired", seed, s.calls-calls)
			}
			stop()
			running.Wait()
		})
	}
}

func (s *shop) number(below int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chance.IntN(below)
}

// What changes outside is noticed by the next look.
func TestAChangeOutsideIsNoticedAfterTheTimeOfRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{
			t: t, things: map[string]int{}, wanted: map[string]int{"a": 1}, under: map[string]bool{}, doubtful: map[string]string{},
			chance: rand.New(rand.NewPCG(1, 1)),
		}
		w := New[string, int](Options{})
		reconcile := s.driver(w).Reconcile
		run := func() controller.Result {
			t.Helper()
			result, err := reconcile(t.Context(), controller.RequestOf[string]{Key: "a"})
			if err != nil {
				t.Fatal(err)
			}
			return result
		}
		if result := run(); s.things["a"] != 1 || result.After != time.Hour {
			t.Fatalf("there is %v, and the result is %v", s.things, result)
		}
		delete(s.things, "a")
		time.Sleep(30 * time.Minute)
		run()
		if len(s.things) != 0 {
			t.Errorf("it was observed before the time")
		}
		time.Sleep(30 * time.Minute)
		run()
		if s.things["a"] != 1 {
			t.Errorf("after the time there is %v", s.things)
		}
	})
}

// A Next that finds something to do for ever holds no worker.
func TestAStepThatChangesNothingEndsTheRun(t *testing.T) {
	d := Driver[string, int, int]{
		World:   New[string, int](Options{}),
		Desired: func(context.Context, string) (*int, error) { return new(1), nil },
		Observe: func(context.Context, string) (*int, error) { return nil, nil },
		Next: func(string, *int, *int) *Step[int] {
			return &Step[int]{Name: "create", Do: func(context.Context) (*int, error) { return nil, nil }}
		},
	}
	result, err := d.Reconcile(t.Context(), controller.RequestOf[string]{Key: "a"})
	if err != nil || !result.Again {
		t.Errorf("the result is %v, %v", result, err)
	}
}
