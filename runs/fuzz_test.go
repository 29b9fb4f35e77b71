// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
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

// A file of any bytes is read without a panic, and the record stays within its bound.
func FuzzFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "runs")
	record, file := open(f, path, runs.LeastBytes)
	wrote(record, 0, 5)
	file.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content[32:], true)
	f.Add(content, false)
	f.Add([]byte{4, 1, 2, 3, 4, 5, 6}, true)
	f.Fuzz(func(t *testing.T, content []byte, sealed bool) {
		if sealed { // with a checksum that is right
			content = runs.Sealed(content)
		}
		record := newRecord(t, runs.LeastBytes)
		if end := record.Load(content); end > len(content) {
			t.Errorf("%d bytes of %d are in order", end, len(content))
		}
		found, _ := record.Find(runs.Query{Limit: 1 << 20})
		record.Present(runs.Query{})
		for i := range found {
			record.Origins(&found[i])
		}
		if s := record.Stats(); s.Bytes > s.Limit {
			t.Errorf("the record has %d bytes, the bound is %d", s.Bytes, s.Limit)
		}
	})
}
