// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/traces"
	"github.com/setpoint-io/setpoint/workqueue"
)

// BenchmarkRun measures what a run with one cause and one write costs the record: without traces, with a receiver of all spans
// over loopback, and with one of a tenth of them. cpu-ns/op is the CPU time of the whole process: worker, exporter, and the
// receiver's reading of the bodies.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name    string
		receive bool
		drop    float64
	}{{"off", false, 0}, {"on", true, 0}, {"on-a-tenth", true, 0.9}} {
		b.Run(c.name, func(b *testing.B) {
			record, err := runs.New(runs.DefaultBytes)
			if err != nil {
				b.Fatal(err)
			}
			settled := func() {}
			if c.receive {
				settled = exporting(b, record, c.drop)
			}
			loop, runOf := record.Loop("web", "apps", "Deployment"), runWithCause(b)
			b.ReportAllocs()
			began := cpuTime(b)
			for i := 0; b.Loop(); i++ {
				runs.Add(loop, object.Key{Namespace: "shop", Name: "web"}, runOf(i))
				if i%512 == 511 {
					settled()
				}
			}
			b.ReportMetric(float64((cpuTime(b)-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// runWithCause returns a function that makes the run of a number.
func runWithCause(b *testing.B) func(i int) *runs.Ended {
	b.Helper()
	web := object.Ref{Group: "apps", Kind: "Deployment", Key: object.Key{Namespace: "shop", Name: "web"}, UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}
	queue := workqueue.New(workqueue.Options[object.Key]{})
	queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "deployments", Verb: workqueue.Updated, Ref: web, Version: "7", From: "6"}}, web.Key)
	item, _ := queue.Get()
	now := time.Unix(1_700_000_000, 0)
	return func(i int) *runs.Ended {
		return &runs.Ended{Began: now.Add(time.Duration(i) * time.Millisecond), Took: time.Millisecond, Outcome: runs.Done, Causes: item.Causes,
			Writes: []runs.Write{{Verb: "update", Object: runs.ObjectOf(web), Version: fmt.Sprint(i + 8), Subresource: "status", Fields: []string{"status.replicas"}}}}
	}
}

// exporting has a record send its spans to a receiver that reads and drops them, and returns a function that waits until all are sent.
func exporting(b *testing.B, record *runs.Record, drop float64) (settled func()) {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what is missing fails the request
	}))
	b.Cleanup(server.Close)
	exporter, err := traces.New(traces.Config{Endpoint: server.URL + "/v1/traces", Drop: drop, Queue: 4096})
	if err != nil {
		b.Fatal(err)
	}
	exporter.Observe(record)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { exporter.Run(ctx) })
	b.Cleanup(running.Wait)
	b.Cleanup(cancel)
	return func() {
		for s := exporter.Stats(); drop == 0 && s.Sent+s.Dropped < record.Stats().Runs; s = exporter.Stats() {
			if s.Dropped > 0 {
				b.Fatalf("%d spans were dropped", s.Dropped)
			}
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// cpuTime returns the CPU time of the process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
