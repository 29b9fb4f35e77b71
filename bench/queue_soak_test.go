// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/setpoint-io/setpoint/workqueue"
)

func TestSoakOfTheQueueFindsNothing(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"queue", "--soak", "100003"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"soak-adds  setpoint=100003 ", "soak-lost  setpoint=0.00 peer=none ratio=none aim=0 ok",
		"soak-doubled  setpoint=0.00 peer=none ratio=none aim=0 ok", "soak-at-the-same-time  setpoint=0.00 ",
		"soak-keys ", "soak-gets ", "soak-seconds ",
	} {
		name, rest, _ := strings.Cut(want, " ")
		_, line, found := strings.Cut(out.String(), "\n"+name+" ")
		if !found || !strings.HasPrefix(strings.TrimSpace(line), strings.TrimSpace(rest)) {
			t.Errorf("no line %q in\n%s", want, out.String())
		}
	}
}

// forgetful loses one add in a thousand.
type forgetful struct {
	*workqueue.Queue[int]
	adds atomic.Int64
}

func (f *forgetful) AddWith(how workqueue.Add, keys ...int) {
	if f.adds.Add(1)%1000 != 0 {
		f.Queue.AddWith(how, keys...)
	}
}

// repetitive adds one in a thousand twice, and the second time when the key may have been
// handed out.
type repetitive struct {
	*workqueue.Queue[int]
	gets atomic.Int64
}

func (r *repetitive) Done(key int) {
	r.Queue.Done(key)
	if r.gets.Add(1)%1000 == 0 {
		r.Add(key)
	}
}

func TestSoakFailsWhereTheQueueLosesOrDoubles(t *testing.T) {
	for name, test := range map[string]struct {
		queue soakedQueue
		short string
	}{
		"loses":   {&forgetful{Queue: newSoakedQueue()}, "\nsoak-lost "},
		"doubles": {&repetitive{Queue: newSoakedQueue()}, "\nsoak-doubled "},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := soak(t.Context(), test.queue, 50_000, &out)
			if err == nil || !strings.Contains(err.Error(), "soaking the queue: of 50000 adds") {
				t.Errorf("error %v, want one that says what became of 50000 adds", err)
			}
			_, line, _ := strings.Cut(out.String(), test.short)
			if line, _, _ = strings.Cut(line, "\n"); !strings.HasSuffix(line, " short") {
				t.Errorf("line %q%s, want it to end in short", test.short, line)
			}
		})
	}
}

func TestSoakLedgerCounts(t *testing.T) {
	item := func(key, adds int) workqueue.Item[int] { return workqueue.Item[int]{Key: key, Adds: adds} }
	ran := func(l *soakLedger, i workqueue.Item[int]) { l.begin(i); l.end(i.Key) }
	const shared, own = 7, soakShared
	for name, test := range map[string]struct {
		history                 func(l *soakLedger)
		lost, doubled, together int64
	}{
		"each add in one run": {history: func(l *soakLedger) {
			l.add(shared)
			l.add(shared)
			ran(l, item(shared, 2))
			ran(l, item(l.newKey(), 1))
		}},
		"no run":            {lost: 2, history: func(l *soakLedger) { l.add(shared); l.newKey() }},
		"a run of too few":  {lost: 1, history: func(l *soakLedger) { l.add(shared); l.add(shared); ran(l, item(shared, 1)) }},
		"a run too early":   {lost: 1, history: func(l *soakLedger) { l.add(shared); ran(l, item(shared, 2)); l.add(shared) }},
		"a run of too many": {doubled: 1, history: func(l *soakLedger) { l.add(shared); ran(l, item(shared, 2)) }},
		"a run of nothing":  {doubled: 1, history: func(l *soakLedger) { ran(l, item(shared, 0)) }},
		"two runs of one add": {doubled: 1, history: func(l *soakLedger) {
			ran(l, item(l.newKey(), 1))
			ran(l, item(own, 1))
		}},
		"two workers": {together: 1, history: func(l *soakLedger) {
			l.add(shared)
			l.add(shared)
			l.begin(item(shared, 1))
			l.begin(item(shared, 1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &soakLedger{shared: make([]soakedKey, soakShared), own: make([]atomic.Int32, 2)}
			test.history(l)
			_, _, lost, doubled := l.sum()
			if together := l.together.Load(); lost != test.lost || doubled != test.doubled || together != test.together {
				t.Errorf("lost %d, doubled %d, together %d; want %d, %d, %d", lost, doubled, together, test.lost, test.doubled, test.together)
			}
		})
	}
}

func TestSoakEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if err := soak(ctx, newSoakedQueue(), 1_000_000, &out); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
