// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// A watch that is asked to end while it tells events goes on with them, and does not begin again.
func TestWhatIsBeingToldWhenAWatchEndsIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, maps := serveMaps(t)
		b := newBubble(t, api, silent{})
		var told []string
		slow := func(ctx context.Context, events []*event.Event) error {
			for _, e := range events {
				told = append(told, e.Key.Name)
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		}
		if err := b.run(Options{Kinds: []string{"configmaps"}, Tell: slow}, func() {
			passes(time.Second)
			add(t, maps, aMap("new"))
			passes(time.Second / 2) // it is being told
		}); err != nil {
			t.Error(err)
		}
		if !slices.Equal(told, []string{"new"}) {
			t.Errorf("told %q, want each once", told)
		}
	})
}

// A watch does not wait for a Tell that does not return.
func TestTheLastWordsOfAWatchHaveAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, maps := serveMaps(t)
		b := newBubble(t, api, silent{})
		calls := 0
		stuck := func(ctx context.Context, _ []*event.Event) error {
			calls++
			<-ctx.Done()
			return ctx.Err()
		}
		var asked time.Time
		err := b.run(Options{Kinds: []string{"configmaps"}, Tell: stuck}, func() {
			passes(time.Second)
			add(t, maps, aMap("new"))
			passes(time.Second)
			asked = time.Now()
		})
		if took := time.Since(asked); calls != 1 || took != lastWords || !errors.Is(err, context.Canceled) {
			t.Errorf("%d calls, the watch took %s to end: %v; want one call and %s", calls, took, err, lastWords)
		}
	})
}
