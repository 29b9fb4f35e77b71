// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Bytes that are no entry are an error: decoding them neither panics nor allocates more than they could hold.
func FuzzDecode(f *testing.F) {
	record, err := runs.New(runs.LeastBytes)
	if err != nil {
		f.Fatal(err)
	}
	h := &history{Rand: rand.New(rand.NewPCG(1, 1)), queue: workqueue.New(workqueue.Options[object.Key]{}), now: time.Unix(1, 0)}
	loop := record.Loop("a", "", "Pod")
	for range 30 {
		key := object.Key{Namespace: "ns", Name: "k"}
		runs.Add(loop, key, h.run(key))
		h.queue.Done(key)
	}
	entries, words := record.Entries()
	for _, entry := range entries {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry []byte) {
		run, err := runs.Decode(entry, words)
		if err == nil && len(run.Writes)+len(run.Causes) > len(entry) {
			t.Errorf("%d bytes are decoded to %d writes and %d causes", len(entry), len(run.Writes), len(run.Causes))
		}
	})
}
