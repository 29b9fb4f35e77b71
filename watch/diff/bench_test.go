// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"os"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
)

// BenchmarkCompare is of a Pod of two containers that becomes unready: five fields.
func BenchmarkCompare(b *testing.B) {
	data, err := os.ReadFile("testdata/pod.json")
	if err != nil {
		b.Fatal(err)
	}
	from, to := parse(b, string(data)), parse(b, string(data))
	status := to["status"].(map[string]any)
	for _, i := range []int{2, 3} {
		c := status["conditions"].([]any)[i].(map[string]any)
		c["status"], c["lastTransitionTime"] = "False", "2026-11-20T09:00:00Z"
	}
	status["containerStatuses"].([]any)[0].(map[string]any)["ready"] = false
	schema, _ := Builtin(event.Kind{Version: "v1", Kind: "Pod"})
	if found := Compare(from, to, schema); len(found) != 5 {
		b.Fatalf("%d differences", len(found))
	}
	b.Run("changed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Compare(from, to, schema)
		}
	})
	b.Run("equal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Compare(from, from, schema)
		}
	})
	b.Run("schema", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Builtin(event.Kind{Version: "v1", Kind: "Pod"})
		}
	})
}
