// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
)

func TestDigestOf(t *testing.T) {
	key := []byte("of this test")
	const lease = `"apiVersion":"coordination.k8s.io/v1","kind":"Lease"`
	for _, c := range []struct {
		name     string
		old, new string
		want     string
	}{
		{"nothing", `{"a":1}`, `{"a":1}`, "[heartbeats versions]"},
		{"numbers by value", `{"a":1}`, `{"a":1.0}`, "[heartbeats versions]"},
		{"bookkeeping", `{"metadata":{"a":1,"resourceVersion":"1","generation":1,"managedFields":[]}}`, `{"metadata":{"a":1,"resourceVersion":"2"}}`, "[heartbeats versions]"},
		{"content", `{"spec":{"a":1},"status":{}}`, `{"spec":{"a":2},"status":{}}`, "[content]"},
		{"a label", `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"a":"2"}}}`, "[content]"},
		{"status", `{"spec":{"a":1},"status":{"a":1}}`, `{"spec":{"a":1},"status":{"a":2}}`, "[status]"},
		{"both", `{"spec":{"a":1}}`, `{"spec":{"a":2},"status":{"a":2}}`, "[content status]"},
		{"null is not absent", `{"spec":{"a":null}}`, `{"spec":{}}`, "[content]"},
		{"an empty map is not absent", `{"spec":{"a":{}}}`, `{"spec":{}}`, "[content]"},
		{"where one text ends", `{"spec":["ab","c"]}`, `{"spec":["a","bc"]}`, "[content]"},
		{"a lease renewed", `{` + lease + `,"spec":{"holderIdentity":"a","renewTime":"1"}}`, `{` + lease + `,"spec":{"holderIdentity":"a","renewTime":"2"}}`, "[heartbeats versions]"},
		{"a lease taken", `{` + lease + `,"spec":{"holderIdentity":"a","renewTime":"1"}}`, `{` + lease + `,"spec":{"holderIdentity":"b","renewTime":"1"}}`, "[content]"},
		{"a node alive", `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"1"}]}}`, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"2"}]}}`, "[heartbeats versions]"},
		{"an old leader alive", `{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{\"holderIdentity\":\"a\",\"renewTime\":1}"}}}`,
			`{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{\"holderIdentity\":\"a\",\"renewTime\":2}"}}}`, "[heartbeats versions]"},
		{"the first trigger time", `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"1"}}}`, "[heartbeats versions]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fmt.Sprint(observe.Classes(observe.DigestOf(parse(t, c.old), key), observe.DigestOf(parse(t, c.new), key)))
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if observe.DigestOf(parse(t, `{"a":1}`), key) == observe.DigestOf(parse(t, `{"a":1}`), []byte("another")) {
		t.Error("the key makes no difference")
	}
}

// TestDigestsAgreeWithEvents: what an event calls a heartbeat or less leaves both digests as
// they are, and what it calls more does not.
func TestDigestsAgreeWithEvents(t *testing.T) {
	key := []byte("of this test")
	scalar := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any]("a"), rapid.Just[any](""), rapid.Just[any](int64(1)), rapid.Just[any](1.0), rapid.Just[any](1.5), rapid.Just[any](true))
	names := rapid.SampledFrom([]string{"metadata", "annotations", "spec", "status", "conditions", "renewTime", "lastHeartbeatTime", "resourceVersion",
		"managedFields", "endpoints.kubernetes.io/last-change-trigger-time", "series", "count"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		below := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
		return rapid.OneOf(scalar,
			rapid.Map(rapid.SliceOfN(below, 0, 2), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(names, below, 0, 3), func(m map[string]any) any { return m }))
	}
	tree := rapid.MapOfN(names, value(3), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]event.Kind{leases, nodes, events, widgets}).Draw(t, "kind")
		from, to := tree.Draw(t, "from"), tree.Draw(t, "to")
		if rapid.Bool().Draw(t, "near") {
			to = maps.Clone(from)
			to[names.Draw(t, "name")] = value(3).Draw(t, "value")
		}
		for _, m := range []map[string]any{from, to} {
			m["apiVersion"], m["kind"] = kind.APIVersion(), kind.Kind
		}
		e := observe.New(observe.Options{Kind: kind, Key: key}).Event(observe.Change{Verb: event.Updated, Old: from, New: to})
		quiet := e.Is(event.Heartbeat) || e.Is(event.Version)
		same := observe.DigestOf(from, key) == observe.DigestOf(to, key)
		if quiet && !same {
			t.Fatalf("%s, and the digests differ:\n%v\n%v", told(e), from, to)
		}
		// Where something came with nothing but heartbeats below it, the digests are the
		// coarser ones: they see nothing, and the event may see that it came.
		if same && e.Is(event.Content) && e.Fields[0].Op == event.Replace && len(e.Fields) == 1 && e.Fields[0].Class == event.Content {
			if _, ok := e.Fields[0].To.(map[string]any); !ok && !quiet {
				if _, ok := e.Fields[0].From.(map[string]any); !ok {
					t.Fatalf("%s, and the digests are the same:\n%v\n%v", told(e), from, to)
				}
			}
		}
	})
}

func BenchmarkDigestOf(b *testing.B) {
	p, key := pod(b), []byte("of this benchmark")
	b.ReportAllocs()
	for b.Loop() {
		observe.DigestOf(p, key)
	}
}
