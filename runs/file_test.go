// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// open returns a record that a file keeps.
func open(t testing.TB, path string, size int) (*runs.Record, *runs.File) {
	t.Helper()
	record := newRecord(t, size)
	file, err := record.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return record, file
}

// all returns all runs of a record that wrote, failed or stated reasons, as a file has them, by number.
func all(record *runs.Record) map[uint64]runs.Run {
	found, _ := record.Find(runs.Query{Limit: 1 << 30})
	by := map[uint64]runs.Run{}
	for _, run := range found {
		if !idle(&run) {
			run.Restored = false
			by[run.Number] = run
		}
	}
	return by
}

// wrote records runs that wrote, of the keys k0, k1 and so on.
func wrote(record *runs.Record, from, to int) {
	loop := record.Loop("deployment", "apps", "Deployment")
	for i := from; i < to; i++ {
		runs.Add(loop, object.Key{Namespace: "shop", Name: fmt.Sprint("k", i)}, &runs.Ended{Began: noon.Add(time.Duration(i) * time.Second), Outcome: runs.Done,
			Writes: []runs.Write{{Verb: "update", Version: fmt.Sprint(1000 + i), Object: runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprint("k", i), UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}}}})
	}
}

// A process that begins after another one finds its runs as they were, by key and by the versions that they wrote, and
// numbers its own runs after them.
func TestRunsSurviveTheProcess(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	path := filepath.Join(t.TempDir(), "runs")
	h := &history{Rand: rand.New(rand.NewPCG(seed, 1)), queue: workqueue.New(workqueue.Options[object.Key]{}), now: time.Unix(1_700_000_000, 0)}
	total := 0
	var before map[uint64]runs.Run
	for process := range 4 {
		record, file := open(t, path, 1<<20)
		if process > 0 {
			if got := all(record); !reflect.DeepEqual(got, before) {
				t.Fatalf("process %d reads %d runs, want the %d that were there", process, len(got), len(before))
			}
			if len(record.Present(runs.Query{})) > 0 {
				t.Error("what an earlier process waited for is said to be present")
			}
		}
		loop := record.Loop("a", "", "Pod")
		for i := range 300 {
			key := object.Key{Namespace: "ns", Name: fmt.Sprint("k", h.IntN(20))}
			place := runs.Add(loop, key, h.run(key))
			h.queue.Done(key)
			if total++; h.IntN(3) == 0 {
				place.Settled(time.Duration(h.IntN(1000)) * time.Millisecond)
			}
			if i%50 == 49 {
				if err := file.Write(); err != nil {
					t.Fatal(err)
				}
				place.Settled(time.Second)
			}
		}
		before = all(record)
		for number := range before {
			if number > uint64(total) {
				t.Fatalf("a run has the number %d after %d runs", number, total)
			}
		}
		file.Close()
	}
}

func TestARunOfAnEarlierProcessIsFoundByWhatItWrote(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	record, file := open(t, path, runs.LeastBytes)
	wrote(record, 0, 3)
	file.Close()
	record, file = open(t, path, runs.LeastBytes)
	defer file.Close()
	web := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "k1"}
	if run, _, found := record.Wrote(web, "1001"); !found || run.Number != 2 || !run.Restored {
		t.Errorf("version 1001 was written by %+v (%v), want run 2 of an earlier process", run, found)
	}
	wrote(record, 1, 2)
	found, _ := record.Find(runs.Query{Object: web})
	if len(found) != 2 || found[0].Number != 4 || found[0].Restored || found[1].Number != 2 {
		t.Errorf("the runs are %+v, want 4, and 2 of an earlier process", found)
	}
	if s := record.Stats(); s.Runs != 1 || s.Restored != 3 || !s.Since.IsZero() {
		t.Errorf("the figures are %+v, want 1 run, 3 restored ones, and none that is missing", s)
	}
}

// After a crash the numbers of the runs that were lost are not used again.
func TestNumbersAreNotUsedTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	record, file := open(t, path, runs.LeastBytes)
	wrote(record, 0, 3)
	if err := file.Write(); err != nil {
		t.Fatal(err)
	}
	wrote(record, 3, 6) // lost
	file.Crash()
	record, file = open(t, path, runs.LeastBytes)
	wrote(record, 6, 7)
	for number := range all(record) {
		if number > 3 && number <= 6 {
			t.Errorf("number %d is used again", number)
		}
	}
	if len(all(record)) != 4 {
		t.Errorf("there are %d runs, want 3 and a new one", len(all(record)))
	}
	file.Close()
}

// Wherever a file is cut, and whichever byte is wrong, the runs before are read, later ones are written, and both are
// there the next time. Only a file that does not begin as one of a record is refused, and stays as it is.
func TestAFileMayBeDamagedAnywhere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runs")
	record, file := open(t, path, runs.LeastBytes)
	for i := range 3 {
		wrote(record, i, i+1)
		if err := file.Write(); err != nil {
			t.Fatal(err)
		}
	}
	want := all(record)
	file.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := range whole {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x55
		for _, content := range [][]byte{whole[:at], flipped} {
			if !damaged(t, filepath.Join(dir, "damaged"), content, want) {
				refused++
			}
		}
	}
	if refused == 0 || refused > len("setpoint runs 1\n") {
		t.Errorf("%d files were refused, want those with a wrong byte at their beginning", refused)
	}
}

// damaged checks what a record makes of a damaged file, and reports whether it was opened.
func damaged(t *testing.T, path string, content []byte, want map[uint64]runs.Run) bool {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil { //nolint:gosec // a path of the test
		t.Fatal(err)
	}
	record := newRecord(t, runs.LeastBytes)
	file, err := record.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		if after, _ := os.ReadFile(path); !bytes.Equal(after, content) {
			t.Fatalf("a file that was refused (%v) has been changed", err)
		}
		return false
	}
	got := all(record)
	for number, run := range got {
		if !reflect.DeepEqual(run, want[number]) {
			t.Fatalf("a damaged file has the run %+v, want %+v", run, want[number])
		}
	}
	wrote(record, 100, 101)
	after := all(record)
	if len(after) != len(got)+1 {
		t.Fatalf("the record has %d runs, want %d and a new one", len(after), len(got))
	}
	file.Close()
	record, file = open(t, path, runs.LeastBytes)
	if again := all(record); !reflect.DeepEqual(again, after) {
		t.Fatalf("after a damage and a run the file has %d runs, want %d", len(again), len(after))
	}
	file.Close()
	return true
}

// The files stay within the size of the record, the newest runs are in them, and nobody else may read them.
func TestFilesAreBoundedAndPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	record, file := open(t, path, runs.LeastBytes)
	const all = 20_000
	for i := 0; i < all; i += 100 {
		wrote(record, i, i+100)
		if err := file.Write(); err != nil {
			t.Fatal(err)
		}
		size := int64(0)
		for _, path := range []string{path, path + ".1"} {
			if info, err := os.Stat(path); err == nil {
				size += info.Size()
				if info.Mode().Perm() != 0o600 {
					t.Fatalf("%s has the mode %v", path, info.Mode())
				}
			}
		}
		if size > runs.LeastBytes*5/4 { // the last block may be larger than the rest of its file
			t.Fatalf("after %d runs the files have %d bytes, the record has %d", i, size, runs.LeastBytes)
		}
	}
	file.Close()
	record, file = open(t, path, runs.LeastBytes)
	defer file.Close()
	found, _ := record.Find(runs.Query{Limit: all})
	if len(found) < 500 || found[0].Number != all {
		t.Errorf("%d runs are read, the newest is %d, want several hundred up to %d", len(found), found[0].Number, all)
	}
	if since := record.Stats().Since; since.IsZero() || since.After(found[len(found)-1].Began) {
		t.Errorf("runs are said to be missing before %v, and the oldest began at %v", since, found[len(found)-1].Began)
	}
}

func TestAFileIsOfOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	_, file := open(t, path, runs.LeastBytes)
	if _, err := newRecord(t, runs.LeastBytes).Open(path, nil); !errors.Is(err, runs.ErrFileInUse) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second process gets %v, want an error that names the file", err)
	}
	file.Close()
	_, file = open(t, path, runs.LeastBytes)
	file.Close()
}

func TestFilesThatCannotBeOfARecord(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, content, want string }{
		{"notes.txt", "what I must not forget", "is not a file of runs; name another one"},
		{"newer", "setpoint runs 2\n12345678", "of a newer format than this program reads"},
		{"none/runs", "", "there is no directory"},
	} {
		path := filepath.Join(dir, c.name)
		if c.content != "" {
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := newRecord(t, runs.LeastBytes).Open(path, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if now, _ := os.ReadFile(path); string(now) != c.content {
			t.Errorf("%s is now %q", c.name, now)
		}
	}
	record := newRecord(t, runs.LeastBytes)
	wrote(record, 0, 1)
	if _, err := record.Open(filepath.Join(dir, "late"), nil); err == nil || !strings.Contains(err.Error(), "the record is not empty") {
		t.Errorf("a record with runs: %v", err)
	}
}

// A disk that refuses writes is logged once. The record goes on, and when writing is possible again nothing is missing.
func TestWritesThatFailAreLoggedOnceAndMadeUpFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	var log bytes.Buffer
	record := newRecord(t, runs.LeastBytes)
	file, err := record.Open(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	wrote(record, 0, 2)
	if err := file.Write(); err != nil {
		t.Fatal(err)
	}
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	writable := file.Replace(readOnly)
	for i := 2; i < 5; i++ {
		wrote(record, i, i+1)
		if file.Write() == nil {
			t.Fatal("a file that is open for reading was written")
		}
	}
	if n := strings.Count(log.String(), "cannot write the file of runs"); n != 1 {
		t.Errorf("the failure was logged %d times:\n%s", n, log.String())
	}
	_ = file.Replace(writable).Close()
	wrote(record, 5, 6)
	want := all(record)
	file.Close()
	if !strings.Contains(log.String(), "is written again") {
		t.Errorf("the log does not say that it works again:\n%s", log.String())
	}
	record, file = open(t, path, runs.LeastBytes)
	defer file.Close()
	if got := all(record); !reflect.DeepEqual(got, want) {
		t.Errorf("the file has %d runs, want %d", len(got), len(want))
	}
}

// Run writes every two seconds, and once more at its end.
func TestAFileIsWrittenInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "runs")
		record, file := open(t, path, runs.LeastBytes)
		ended := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		go func() { file.Run(ctx); close(ended) }()
		size := func() int64 {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		before := size()
		wrote(record, 0, 1)
		time.Sleep(runs.WriteEvery + time.Millisecond)
		synctest.Wait()
		first := size()
		time.Sleep(10 * runs.WriteEvery)
		synctest.Wait()
		if first <= before || size() != first {
			t.Errorf("the file had %d bytes, %d after a run, and %d without any more", before, first, size())
		}
		wrote(record, 1, 2)
		stop()
		<-ended
		record, file = open(t, path, runs.LeastBytes)
		if got := len(all(record)); got != 2 {
			t.Errorf("the file has %d runs, want 2", got)
		}
		file.Close()
	})
}

// A run that is counted in an earlier one allocates nothing, also if a file keeps the record.
func TestAddingARunThatChangedNothingDoesNotAllocate(t *testing.T) {
	record, file := open(t, filepath.Join(t.TempDir(), "runs"), runs.LeastBytes)
	defer file.Close()
	key := object.Key{Namespace: "shop", Name: "web"}
	loop := record.Loop("deployment", "apps", "Deployment")
	waits := &runs.Ended{Began: noon, Outcome: runs.Done, Causes: causesOf(key), Reasons: []runs.Reason{{Code: "Waits", Text: "it waits"}}}
	for _, run := range []*runs.Ended{{Began: noon, Outcome: runs.Done, Causes: causesOf(key)}, waits} {
		runs.Add(loop, key, run)
		if err := file.Write(); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(1000, func() { runs.Add(loop, key, run) }); n != 0 {
			t.Errorf("adding %+v allocates %v times", *run, n)
		}
	}
}
