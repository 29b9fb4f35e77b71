// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// A sink that fails a third of the time, and a process that ends again and again, some
// times between a send and its answer: each event arrives, the first time in its order.
func TestNothingInAJournalIsLostOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watch.journal")
	const all = 60
	var got []string
	calls := 0
	for start := 0; ; start++ {
		if start > 200 {
			t.Fatal("it does not come to an end")
		}
		j, damage, err := journal.Open(path, journal.Options{})
		if err != nil || damage != nil {
			t.Fatal(err, damage)
		}
		if start == 0 {
			var b journal.Batch
			for n := range all {
				data, err := event.Encode(made(n), true)
				if err != nil {
					t.Fatal(err)
				}
				b.Event("hook", fmt.Sprintf("e%d", n), data)
			}
			b.Event("hook", "odd", []byte("{}"))
			if err := j.Commit(&b); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		f := &fake{answer: func(_ context.Context, events []*event.Event) sink.Result {
			calls++
			if calls%3 == 0 {
				return sink.Result{Err: errAway}
			}
			for _, e := range events {
				got = append(got, e.ID)
			}
			if calls%7 == 0 {
				stop() // the answer is lost
				return sink.Result{Err: errAway}
			}
			return sink.Result{Done: len(events)}
		}}
		r, err := sink.NewRunner(sink.RunnerOptions{
			Name: "hook", Sink: f, Outbox: sink.Journaled(j, "hook", nil), Delivery: sink.Delivery{Batch: 4, MinWait: 1, MaxWait: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		drained := r.Drained(ctx) == nil
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		s := r.Status()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if drained {
			if s.Dropped != 1 || s.Waiting != 0 || start == 0 {
				t.Errorf("%+v at start %d", s, start)
			}
			break
		}
	}
	var first []string
	for _, id := range got {
		if !slices.Contains(first, id) {
			first = append(first, id)
		}
	}
	for n := range all {
		if n >= len(first) || first[n] != fmt.Sprintf("e%d", n) {
			t.Fatalf("got %v", first)
		}
	}
	t.Logf("%d events arrived %d times", all, len(got))
}

// A sink gets an event that was just put into the journal without decoding it, and decodes one that is not known any more.
func TestRecentEventsAreNotDecoded(t *testing.T) {
	j, _, err := journal.Open(filepath.Join(t.TempDir(), "watch.journal"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	recent := sink.NewRecent()
	known := made(1)
	for n, e := range []*event.Event{known, made(2)} {
		data, err := event.Encode(e, false)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			recent.Keep(data, known)
		}
		var b journal.Batch
		b.Event("hook", e.ID, data)
		if err := j.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
	items, err := sink.Journaled(j, "hook", recent).Next(10)
	if err != nil || len(items) != 2 || items[0].Event != known || items[1].Event == nil || items[1].Event.ID != made(2).ID {
		t.Errorf("%+v, %v; want the first as it was kept, and the second decoded", items, err)
	}
	for n := range 5000 {
		recent.Keep(fmt.Append(nil, n), known)
	}
	if items, err = sink.Journaled(j, "hook", recent).Next(1); err != nil || len(items) != 1 || items[0].Event == known || items[0].Event.ID != known.ID {
		t.Errorf("%+v, %v; want the first decoded: others came after it", items, err)
	}
}
