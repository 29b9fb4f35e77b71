// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// world is objects that live, as a server would tell of them: each change has a version,
// and the state says which.
type world struct {
	version int
	uid     map[string]int            // by name; 0: not there
	state   map[string]map[string]any // by name
}

// change makes one change of an object.
func (w *world) change(t *rapid.T, name string, now time.Time) *event.Event {
	w.version++
	e := &event.Event{
		ID: fmt.Sprint(w.version), Version: fmt.Sprint(w.version), Time: now, Kind: configMaps,
		Key: object.Key{Namespace: "n", Name: name}, Old: w.state[name],
	}
	if name >= "A" && name <= "Z" {
		e.Kind = widgets
	}
	verbs := []event.Verb{event.Created, event.Existing}
	if w.uid[name] != 0 {
		verbs = []event.Verb{event.Updated, event.Updated, event.Updated, event.Updated, event.Deleted, event.Replaced}
	}
	e.Verb = rapid.SampledFrom(verbs).Draw(t, "verb")
	if e.Verb != event.Updated && e.Verb != event.Deleted {
		w.uid[name] = w.version
	}
	e.UID = types.UID(fmt.Sprint(w.uid[name]))
	if e.Verb == event.Deleted {
		w.uid[name], w.state[name] = 0, nil
		return e
	}
	status := rapid.SampledFrom([]string{"True", "False"}).Draw(t, "ready")
	e.New = map[string]any{
		"version": w.version,
		"status":  map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}},
	}
	w.state[name] = e.New
	e.Merged = rapid.SampledFrom([]int{0, 0, 0, 3}).Draw(t, "merged")
	return e
}

// TestWhatGoesInComesOut is the promise of the package, for any events at any time.
func TestWhatGoesInComesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := func(name string, choices ...time.Duration) time.Duration {
			return rapid.SampledFrom(choices).Draw(t, name)
		}
		o := Options{
			Window: duration("window", 0, time.Second), Settle: duration("settle", 0, 2*time.Second),
			maxHold: duration("max hold", 0, 5*time.Second), limit: rapid.IntRange(0, 3).Draw(t, "limit"),
		}
		s := New(o)
		w := &world{uid: map[string]int{}, state: map[string]map[string]any{}}
		in, out := map[string]int{}, map[string]int{} // changes, by name
		lastIn, lastOut := map[string]*event.Event{}, map[string]*event.Event{}
		now := noon
		tell := func(events []*event.Event) {
			for _, e := range events {
				name := e.Key.Name
				out[name] += max(e.Merged, 1)
				if before := lastOut[name]; before != nil && atoi(before.Version) >= atoi(e.Version) {
					t.Fatalf("%s: %s after %s", name, e.Version, before.Version)
				}
				lastOut[name] = e
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(duration("pause", 0, 300*time.Millisecond, time.Second, 4*time.Second))
			if rapid.Bool().Draw(t, "driven") {
				tell(s.Due(now))
				if next := s.Next(); !next.IsZero() && !next.After(now) {
					t.Fatalf("at %s something is due since %s", now, next)
				}
			}
			e := w.change(t, rapid.SampledFrom([]string{"a", "b", "W", "X", "Y"}).Draw(t, "name"), now)
			in[e.Key.Name] += max(e.Merged, 1)
			lastIn[e.Key.Name] = e
			tell(s.Add(e, now))
			limit := o.limit
			if limit == 0 {
				limit = mostHeld
			}
			if s.Held() > limit || s.Held() != len(s.due) {
				t.Fatalf("%d are held, %d in order of time; the limit is %d", s.Held(), len(s.due), limit)
			}
		}
		tell(s.Flush())
		if s.Held() != 0 || !s.Next().IsZero() {
			t.Fatalf("%d are held in the end, the next is due at %s", s.Held(), s.Next())
		}
		for name, last := range lastIn {
			got := lastOut[name]
			switch {
			case got == nil:
				t.Fatalf("%s is not told of", name)
			case got.Version != last.Version || got.UID != last.UID || (got.Verb == event.Deleted) != (last.Verb == event.Deleted):
				t.Fatalf("%s: the last told is %s %s, the last change %s %s", name, got.Verb, got.Version, last.Verb, last.Version)
			case got.New["version"] != last.New["version"]:
				t.Fatalf("%s: the last state told is %v, the last state %v", name, got.New, last.New)
			case in[name] != out[name]:
				t.Fatalf("%s: %d changes went in, %d came out", name, in[name], out[name])
			}
		}
	})
}

func atoi(s string) int {
	n := 0
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}
