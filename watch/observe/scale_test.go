// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
)

// widgets is an object with a list of n elements, in which every element differs from that of
// another turn, and whose author owns each element by name.
func widgets(n, turn int) map[string]any {
	list := make([]any, n)
	owned := make(map[string]any, n)
	for i := range list {
		name := fmt.Sprintf("item-%06d", i)
		list[i] = map[string]any{"name": name, "value": int64(turn), "token": fmt.Sprint(turn)}
		owned[fmt.Sprintf(`k:{"name":%q}`, name)] = map[string]any{".": map[string]any{}, "f:value": map[string]any{}}
	}
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "uid": "u", "resourceVersion": fmt.Sprint(turn), "managedFields": []any{
			map[string]any{"manager": "one", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": map[string]any{
				"f:spec": map[string]any{"f:items": owned}}},
			map[string]any{"manager": "two", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": map[string]any{
				"f:spec": map[string]any{"f:other": map[string]any{}}}},
		}},
		"spec": map[string]any{"items": list},
	}
}

func observerOfWidgets(t testing.TB, hide ...string) *Observer {
	t.Helper()
	o := Options{Kind: event.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets"}}
	for _, text := range hide {
		rule, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Hide = append(o.Hide, rule)
	}
	return New(o)
}

// The work for an update grows as the list does, and not as its square: ten times the list is
// ten times the work, where the square would be a hundred. What is counted are allocations,
// which reading keys costs; BenchmarkLargeList shows the time.
func TestTheWorkGrowsAsTheObjectDoes(t *testing.T) {
	for name, hide := range map[string][]string{"nothing hidden": nil, "values hidden": {"widgets.example.com:spec.items[*].token"}} {
		t.Run(name, func(t *testing.T) {
			o := observerOfWidgets(t, hide...)
			work := func(n int) float64 {
				old, now := widgets(n, 1), widgets(n, 2)
				return testing.AllocsPerRun(1, func() {
					e := o.Event(Change{Verb: event.Updated, Old: old, New: now})
					if len(e.Fields) != 2*n || len(e.Authors) != 1 || e.Authors[0].Manager != "one" {
						t.Errorf("%d fields by %v, want %d by one", len(e.Fields), e.Authors, 2*n)
					}
				})
			}
			few, many := work(100), work(1000)
			t.Logf("%.0f allocations for 100 elements, %.0f for 1000", few, many)
			if many > 20*few {
				t.Errorf("ten times the list is %.0f times the work", many/few)
			}
		})
	}
}

func BenchmarkLargeList(b *testing.B) {
	o := observerOfWidgets(b)
	old, now := widgets(50_000, 1), widgets(50_000, 2)
	b.ReportAllocs()
	for b.Loop() {
		o.Event(Change{Verb: event.Updated, Old: old, New: now})
	}
}
