// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestQueueMeasuresAllQueuesWithBothTypesOfKeys(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"queue", "--keys", "50", "--ops", "500", "--turns", "2"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"object-key", "string"} {
		for _, work := range []string{oneGoroutine, eightConsumers, rateLimited} {
			for _, suffix := range []string{"", "-vs-priority-queue", "-allocations", "-allocations-vs-priority-queue"} {
				name := key + "-" + work + suffix
				_, line, found := strings.Cut(out.String(), "\n"+name+" ")
				line, _, _ = strings.Cut(line, "\n")
				if !found || strings.Contains(line, "setpoint=0.00ns") || strings.Contains(line, "peer=none") {
					t.Errorf("%s: %q is no measure of both sides, in\n%s", name, line, out.String())
				}
			}
		}
	}
}

func TestQueuesHandOutEachKeyOnceForEachAdd(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e"}
	for _, side := range []string{setpointSide, clientGoSide, controllerRuntimeSide} {
		t.Run(side, func(t *testing.T) {
			q := newMeasuredQueue[string](side, false)
			defer q.shutDown()
			for i, key := range keys {
				q.add(i, key)
				q.add(i, key) // merged
			}
			q.settle()
			got := map[string]int{}
			for range keys {
				key := q.get()
				got[key]++
				q.done(key)
			}
			for _, key := range keys {
				if got[key] != 1 {
					t.Errorf("%q was handed out %d times, want once", key, got[key])
				}
			}
			addAndConsume(q, keys, 64) // returns: nothing is lost
		})
	}
}

func TestQueueSaysWhatIsWrongWithItsArguments(t *testing.T) {
	var out strings.Builder
	err := run(t.Context(), []string{"queue", "--ops", "9"}, &out)
	if err == nil || !strings.Contains(err.Error(), "--ops 9") {
		t.Errorf("error %v, want one that names --ops 9", err)
	}
}
