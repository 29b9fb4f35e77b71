// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// day is a day of a busy manager: every Deployment rolls all the time, so that ReplicaSets, Pods and, every hour,
// namespaces have new names. Of 20 runs 16 change nothing, 3 write and one fails.
type day struct {
	*rand.Rand
	now     time.Time
	version int
	queue   *workqueue.Queue[object.Key]
}

// Of a simulated day.
const (
	dayRate        = 10 // runs a second
	dayDeployments = 2000
	dayRuns        = 24 * 3600 * dayRate
)

// uid returns a UID as API servers make them.
func (d *day) uid() string {
	a, b := d.Uint64(), d.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", uint32(a), uint16(a>>32), a>>52, b&0xfff, b>>16)
}

// run makes the next run, and whether it changed something.
func (d *day) run(i int) (key object.Key, e *runs.Ended, active bool) {
	d.now = d.now.Add(time.Second / dayRate)
	d.version++
	key = object.Key{Namespace: fmt.Sprintf("team-%d-%d", i%20, i/(3600*dayRate)), Name: fmt.Sprint("web-", d.IntN(dayDeployments))}
	e = &runs.Ended{Began: d.now, Took: time.Millisecond, Outcome: runs.Done}
	d.queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "deployments", Verb: workqueue.Updated, Version: fmt.Sprint(d.version),
		Ref: object.Ref{Group: "apps", Kind: "Deployment", Key: key}}}, key)
	item, _ := d.queue.Get()
	e.Causes = item.Causes
	switch i % 20 {
	case 0, 7, 14:
		for range 1 + d.IntN(10) {
			d.version++
			e.Writes = append(e.Writes, runs.Write{Verb: "create", Version: fmt.Sprint(d.version), Manager: "setpoint",
				Object: runs.Object{Kind: "Pod", Namespace: key.Namespace, Name: fmt.Sprintf("%s-%x", key.Name, d.Uint64()), UID: types.UID(d.uid())}})
		}
	case 11:
		e.Outcome, e.Attempt = runs.Failed, 1
		e.Error = fmt.Sprintf("creating pods \"%s-%x\" is forbidden: exceeded quota: compute", key.Name, d.Uint64())
	default:
		return key, e, false
	}
	return key, e, true
}

// A day of runs leaves the record at its bound: the figures that it states, the heap that a collection leaves, and its
// files. Runs that wrote or failed are kept longer than those that changed nothing.
func TestTheRecordStaysAtItsBoundForADay(t *testing.T) {
	if testing.Short() {
		t.Skip("864,000 runs take some seconds")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const size = runs.DefaultBytes
	before := heap()
	record := newRecord(t, size)
	path := filepath.Join(t.TempDir(), "runs")
	file, err := record.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	loop := record.Loop("deployment-controller", "apps", "Deployment")
	d := &day{Rand: rand.New(rand.NewPCG(seed, 1)), now: noon, queue: workqueue.New(workqueue.Options[object.Key]{})}
	var active []time.Time // when the runs began that wrote or failed
	most, mostHeap, mostFile := 0, 0, int64(0)
	for i := range dayRuns {
		key, e, changed := d.run(i)
		runs.Add(loop, key, e)
		d.queue.Done(key)
		if changed {
			active = append(active, d.now)
		}
		if i%(10*60*dayRate) == 0 { // every ten minutes
			if err := file.Write(); err != nil {
				t.Fatal(err)
			}
			most, mostFile = max(most, record.Stats().Bytes), max(mostFile, bytesOf(t, path)+bytesOf(t, path+".1"))
		}
		if i%(3600*dayRate) == 0 { // every hour
			mostHeap = max(mostHeap, heap()-before-24*cap(active))
		}
	}
	s := record.Stats()
	t.Logf("%d runs; the record has %d bytes at most, the heap %d, the files %d; the bound is %d; kept since %v before the end",
		s.Runs, most, mostHeap, mostFile, size, d.now.Sub(s.Since).Round(time.Second))
	if s.Runs != dayRuns || s.Dropped == 0 || most > size || most < size*9/10 {
		t.Errorf("%d runs, %d entries dropped, %d bytes: want %d runs, a full record, and no more than %d bytes", s.Runs, s.Dropped, most, dayRuns, size)
	}
	// The list of loops, the map of words and the allocator's rounding are not counted.
	if mostHeap > size+size/16 {
		t.Errorf("the heap has %d bytes, want %d and a sixteenth at most", mostHeap, size)
	}
	if mostFile > size+size/16 {
		t.Errorf("the files have %d bytes, want %d and a sixteenth at most", mostFile, size)
	}
	runtime.KeepAlive(record)
	compareDay(t, record, active)
	file.Close()
}

// compareDay checks what is kept: every run since the time that the record states which wrote or failed, and no run that changed
// nothing from before. Those that wrote or failed go back further.
func compareDay(t *testing.T, record *runs.Record, active []time.Time) {
	t.Helper()
	since := record.Stats().Since
	found, _ := record.Find(runs.Query{Limit: 1 << 30})
	kept := map[int64]bool{}
	oldest := map[bool]time.Time{}
	for i := range found {
		run := &found[i]
		changed := len(run.Writes) > 0 || run.Outcome == runs.Failed
		if changed {
			kept[run.Began.UnixNano()] = true
		}
		if at := oldest[changed]; at.IsZero() || run.Last.Before(at) {
			oldest[changed] = run.Last
		}
	}
	want, missing := 0, 0
	for _, at := range active {
		if at.After(since) {
			want++
			if !kept[at.UnixNano()] {
				missing++
			}
		}
	}
	if want == 0 || missing > 0 {
		t.Errorf("of %d runs since %v that wrote or failed %d are missing", want, since, missing)
	}
	if oldest[false].Before(since) || !oldest[true].Before(oldest[false]) {
		t.Errorf("the oldest run that changed nothing is of %v, the oldest that wrote or failed of %v, nothing is missing since %v", oldest[false], oldest[true], since)
	}
	t.Logf("%d runs that wrote or failed are kept; they go back %v further than those that changed nothing", want, oldest[false].Sub(oldest[true]).Round(time.Second))
}

// heap returns how many bytes of the heap are in use after a collection.
func heap() int {
	runtime.GC()
	runtime.GC() // what finalizers and pools have held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// bytesOf returns the size of a file, or 0 if there is none.
func bytesOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
