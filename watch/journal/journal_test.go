// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func options() Options {
	return Options{clock: func() time.Time { return noon }, noSync: true, LockWait: -1}
}

func begin(t testing.TB, o Options) *Journal {
	t.Helper()
	return reopen(t, filepath.Join(t.TempDir(), "journal"), o)
}

// reopen opens a journal that is in order.
func reopen(t testing.TB, path string, o Options) *Journal {
	t.Helper()
	j, damage, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if damage != nil {
		t.Fatalf("a journal in order is damaged: %v", damage)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func closeJournal(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func commit(t testing.TB, j *Journal, fill func(b *Batch)) {
	t.Helper()
	var b Batch
	fill(&b)
	if err := j.Commit(&b); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func key(i int) object.Key {
	return object.Key{Namespace: fmt.Sprintf("team-%d", i%7), Name: fmt.Sprintf("web-%06d", i)}
}

func seen(i int) Seen {
	s := Seen{Version: fmt.Sprint(1000 + i)}
	s.UID = "3f0c" + "7a56-9d1e-4b2a-8c3d-0123456789ab"
	s.Digest[0], s.Digest[15] = byte(i), byte(i>>8)
	if i%3 == 0 {
		s.Trouble = fmt.Sprintf(`[{"about":"Ready","times":%d}]`, i)
	}
	return s
}

func objects(t testing.TB, j *Journal, selection string) map[object.Key]Seen {
	t.Helper()
	all := map[object.Key]Seen{}
	seq, failed := j.Objects(selection)
	maps.Insert(all, seq)
	if err := failed(); err != nil {
		t.Fatal(err)
	}
	return all
}

func ids(t testing.TB, j *Journal, sink string) []string {
	t.Helper()
	var all []string
	after := uint64(0)
	for {
		entries, err := j.Next(sink, after, 7)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			return all
		}
		for _, e := range entries {
			all, after = append(all, e.ID), e.Seq
		}
	}
}

func TestCursorIsThereAfterItIsOpenedAgain(t *testing.T) {
	j := begin(t, options())
	if _, known := j.Selection("pods"); known {
		t.Error("a selection is known that was never committed")
	}
	commit(t, j, func(b *Batch) {
		for i := range 2000 {
			b.Seen("pods", key(i), seen(i))
		}
		b.Seen("nodes", object.Key{Name: "n1"}, Seen{UID: "not a UUID", Version: "v07"})
		b.Seen("nodes", object.Key{Name: "n2"}, Seen{})
	})
	if _, known := j.Selection("pods"); known {
		t.Error("a selection is known before its first list was finished")
	}
	commit(t, j, func(b *Batch) { b.Version("pods", "5000"); b.Version("nodes", "") })
	commit(t, j, func(b *Batch) { b.Forget("pods", key(3)); b.Forget("pods", key(3)); b.Forget("other", key(3)) })
	digests := j.Key()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var late Batch
	late.Version("x", "1")
	if err := j.Commit(&late); !errors.Is(err, ErrClosed) {
		t.Errorf("commit after Close: %v", err)
	}
	if _, _, err := j.Get("pods", key(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("get after Close: %v", err)
	}

	j = reopen(t, j.path, options())
	if !bytes.Equal(digests, j.Key()) || len(digests) != 32 {
		t.Error("the key has changed")
	}
	if v, known := j.Selection("pods"); v != "5000" || !known {
		t.Errorf("selection: %q, %v", v, known)
	}
	if v, known := j.Selection("nodes"); v != "" || !known {
		t.Errorf("selection: %q, %v", v, known)
	}
	all := objects(t, j, "pods")
	if len(all) != 1999 || len(objects(t, j, "nodes")) != 2 {
		t.Errorf("%d pods, %d nodes", len(all), len(objects(t, j, "nodes")))
	}
	for i := range 2000 {
		s, ok, err := j.Get("pods", key(i))
		if err != nil || ok != (i != 3) || ok && (s != seen(i) || all[key(i)] != s) {
			t.Fatalf("object %d: %+v, %v, %v", i, s, ok, err)
		}
	}
	if s, _, _ := j.Get("nodes", object.Key{Name: "n1"}); s.UID != "not a UUID" || s.Version != "v07" {
		t.Errorf("%+v", s)
	}
	if got := j.Selections(); !slices.Equal(got, []string{"nodes", "pods"}) {
		t.Errorf("selections %q", got)
	}
	commit(t, j, func(b *Batch) { b.Drop("pods") })
	if _, known := j.Selection("pods"); known || len(objects(t, j, "pods")) != 0 || len(objects(t, j, "nodes")) != 2 {
		t.Error("a dropped selection is there")
	}
}

func TestObjectsMayBeChangedWhileTheyAreRead(t *testing.T) {
	j := begin(t, options())
	commit(t, j, func(b *Batch) {
		for i := range 3000 {
			b.Seen("pods", key(i), seen(i))
		}
	})
	seq, failed := j.Objects("pods")
	n := 0
	var last string
	for k := range seq {
		at := k.Namespace + "\x00" + k.Name
		if at <= last {
			t.Fatalf("%q after %q", at, last)
		}
		last = at
		// Enough for the file to grow, which waits for readers.
		commit(t, j, func(b *Batch) {
			b.Forget("pods", k)
			b.Event("chat", "x", make([]byte, 4<<10))
		})
		n++
	}
	if err := failed(); err != nil || n != 3000 || len(objects(t, j, "pods")) != 0 {
		t.Errorf("%d objects, %v", n, err)
	}
}

func TestEventIsThereWithTheCursorThatMovedPastIt(t *testing.T) {
	o := options()
	o.Limit = 2
	j := begin(t, o)
	commit(t, j, func(b *Batch) { b.Event("a", "1", nil); b.Version("pods", "1") })
	commit(t, j, func(b *Batch) { b.Event("a", "2", nil); b.Version("pods", "2") })

	var third Batch
	third.Event("b", "3", nil)
	third.Event("a", "3", nil)
	third.Version("pods", "3")
	err := j.Commit(&third)
	var full *FullError
	if !errors.As(err, &full) || !errors.Is(err, ErrFull) || full.Sink != "a" || full.Waiting != 2 {
		t.Fatalf("commit: %v", err)
	}
	if v, _ := j.Selection("pods"); v != "2" || len(ids(t, j, "b")) != 0 {
		t.Error("something of a batch that found no room was written")
	}
	select {
	case <-full.Room:
		t.Error("there is said to be room")
	default:
	}
	if err := j.Ack("a", 1); err != nil {
		t.Fatal(err)
	}
	<-full.Room
	if err := j.Commit(&third); err != nil {
		t.Fatal(err)
	}
	if v, _ := j.Selection("pods"); v != "3" || !slices.Equal(ids(t, j, "a"), []string{"2", "3"}) || !slices.Equal(ids(t, j, "b"), []string{"3"}) {
		t.Error("the batch is not there")
	}
}

func TestCommitWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Limit = 1
		j := begin(t, o)
		commit(t, j, func(b *Batch) { b.Event("a", "1", nil) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var b Batch
		b.Event("a", "2", nil)
		if err := j.CommitWait(ctx, &b); !errors.Is(err, ErrFull) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited until the deadline: %v", err)
		}
		done := make(chan error)
		go func() {
			done <- j.CommitWait(t.Context(), &b)
		}()
		synctest.Wait()
		if err := j.Ack("a", 1); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestSinkWithTooManyBytesHasNoRoom(t *testing.T) {
	o := options()
	o.limitBytes = 100
	j := begin(t, o)
	commit(t, j, func(b *Batch) { b.Event("large", "1", make([]byte, 60)) })
	var b Batch
	b.Event("large", "2", make([]byte, 60))
	if err := j.Commit(&b); !errors.Is(err, ErrFull) {
		t.Errorf("commit: %v", err)
	}
	n, size, oldest, err := j.Waiting("large")
	if n != 1 || size != 61 || !oldest.Equal(noon) || err != nil {
		t.Errorf("waiting %d, %d bytes, since %v, %v", n, size, oldest, err)
	}
}

// Verbs that this program does not write any more are in files of older ones.
func TestVerbsOfOlderProgramsAreRead(t *testing.T) {
	j := begin(t, options())
	commit(t, j, func(b *Batch) {
		for i := range 4 {
			b.Event("chat", fmt.Sprint(i), nil)
		}
		b.Event("gone", "1", nil)
	})
	commit(t, j, func(b *Batch) {
		discarded := newChange(b.encoded, discardEvents, "chat")
		discarded.number(fieldSeq, 2)
		b.add(discarded)
		dropped := newChange(b.encoded, countDropped, "chat")
		dropped.number(fieldCount, 7)
		b.add(dropped)
		b.add(newChange(b.encoded, removeSink, "gone"))
	})
	closeJournal(t, j)
	j = reopen(t, j.path, options())
	if got := ids(t, j, "chat"); !slices.Equal(got, []string{"0", "2", "3"}) || !slices.Equal(j.Sinks(), []string{"chat"}) {
		t.Errorf("waiting %q, sinks %q", got, j.Sinks())
	}
}

func TestWhoWaitsForEventsIsWoken(t *testing.T) {
	j := begin(t, options())
	wake := j.Wake("a")
	commit(t, j, func(b *Batch) { b.Event("b", "1", nil) })
	select {
	case <-wake:
		t.Error("woken by another sink's event")
	default:
	}
	commit(t, j, func(b *Batch) { b.Event("a", "1", nil) })
	commit(t, j, func(b *Batch) { b.Event("a", "2", nil) })
	<-wake
	closeJournal(t, j)
	j = reopen(t, j.path, options())
	<-j.Wake("a") // something waits
}

func TestBatchesThatCannotBeWrittenAreRefused(t *testing.T) {
	j := begin(t, options())
	for name, c := range map[string]struct {
		fill func(b *Batch)
		want string
	}{
		"no name of a selection":  {func(b *Batch) { b.Version("", "1") }, "a selection's name has 0 bytes"},
		"no name of a sink":       {func(b *Batch) { b.Event("", "1", nil) }, "a sink's name has 0 bytes"},
		"a key without a name":    {func(b *Batch) { b.Seen("s", object.Key{Namespace: "x"}, Seen{}) }, "is no key"},
		"a key with a zero byte":  {func(b *Batch) { b.Forget("s", object.Key{Name: "a\x00b"}) }, "is no key"},
		"a key that is too long":  {func(b *Batch) { b.Seen("s", object.Key{Name: strings.Repeat("x", 5000)}, Seen{}) }, "is no key"},
		"a trouble of many bytes": {func(b *Batch) { b.Seen("s", key(1), Seen{Trouble: strings.Repeat("x", 5000)}) }, "its trouble has more than 4096"},
		"an event of many bytes":  {func(b *Batch) { b.Event("s", "1", make([]byte, MaxEvent)) }, "may have 8388608"},
		"a version of many bytes": {func(b *Batch) { b.Version("s", strings.Repeat("1", 5000)) }, "more than 4096"},
	} {
		t.Run(name, func(t *testing.T) {
			var b Batch
			b.Event("sink", "good", nil)
			c.fill(&b)
			if err := j.Commit(&b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if len(j.Sinks()) != 0 {
		t.Error("something of them was written")
	}
	commit(t, j, func(b *Batch) { b.Event("s", "", make([]byte, MaxEvent)) })
	closeJournal(t, j)
	reopen(t, j.path, options())
}

func TestFileThatAnotherHasIsRefused(t *testing.T) {
	j := begin(t, options())
	_, _, err := Open(j.path, options())
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), j.path) {
		t.Errorf("got %v", err)
	}
	closeJournal(t, j)
	reopen(t, j.path, options())
}

func TestFilesThatCannotBeAJournalAreRefused(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Open(filepath.Join(dir, "no", "journal"), options()); err == nil || !strings.Contains(err.Error(), "make it first") {
		t.Errorf("no directory: %v", err)
	}
	if _, _, err := Open(dir, options()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a directory: %v", err)
	}
}

func TestFileIsForItsOwnerOnly(t *testing.T) {
	j := begin(t, options())
	info, err := os.Stat(j.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	closeJournal(t, j)
	if err := os.Chmod(j.path, 0o644); err != nil { //nolint:gosec // that is what is tested
		t.Fatal(err)
	}
	var log strings.Builder
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	reopen(t, j.path, o)
	if !strings.Contains(log.String(), "others could read the journal") {
		t.Errorf("log: %s", log.String())
	}
	if info, err := os.Stat(j.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestNewerFormatIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	before := []byte("setpoint-watch journal 4\nwhat only a newer program knows")
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Open(path, options())
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "its format is 4, and this program reads 3") || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

func TestManyCommitsShareAWrite(t *testing.T) {
	j := begin(t, options())
	j.writing.Lock() // somebody writes
	const n = 16
	done := make(chan error, n)
	for i := range n {
		go func() {
			var b Batch
			b.Event("a", fmt.Sprint(i), nil)
			err := j.Commit(&b)
			done <- err
		}()
	}
	for {
		j.waitingMu.Lock()
		all := len(j.waiting) == n
		j.waitingMu.Unlock()
		if all {
			break
		}
	}
	j.writing.Unlock()
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if waiting := len(ids(t, j, "a")); framesIn(t, j) != 1 || waiting != n {
		t.Errorf("%d frames, %d events", framesIn(t, j), waiting)
	}
}

// A reader must not look for something in the file that is not there yet.
func TestStateHasAChangeOnceItIsWritten(t *testing.T) {
	j := begin(t, options())
	var b Batch
	b.Seen("pods", key(1), seen(1))
	b.Event("chat", "1", nil)
	j.writing.Lock()
	d := j.draft([]*request{{batch: &b}})
	if _, there, err := j.Get("pods", key(1)); there || err != nil || len(ids(t, j, "chat")) != 0 {
		t.Errorf("before it is written, the object is there: %v, %v; events %q", there, err, ids(t, j, "chat"))
	}
	err := j.appendFrame(d.frame, true)
	j.writing.Unlock()
	if _, there, _ := j.Get("pods", key(1)); !there || err != nil || len(ids(t, j, "chat")) != 1 {
		t.Errorf("after it is written, %v, the object is there: %v; events %q", err, there, ids(t, j, "chat"))
	}
}

// Batches that are written together depend on each other.
func TestBatchesOfOneWriteFollowEachOther(t *testing.T) {
	j := begin(t, options())
	commit(t, j, func(b *Batch) { b.Seen("pods", key(1), seen(1)); b.Version("pods", "1") })
	var first, second Batch
	first.Forget("pods", key(1))
	first.Seen("nodes", key(2), seen(2))
	first.Version("pods", "2")
	first.Event("chat", "1", nil)
	second.Seen("pods", key(1), seen(1)) // as it is before the first
	second.Forget("nodes", key(2))
	second.Version("pods", "1")
	second.Event("chat", "2", nil)
	j.writing.Lock()
	j.write([]*request{{batch: &first}, {batch: &second}})
	j.writing.Unlock()
	version, _ := j.Selection("pods")
	if _, there, _ := j.Get("pods", key(1)); !there || version != "1" || len(objects(t, j, "nodes")) != 0 {
		t.Errorf("pods %v at %s, nodes %v", there, version, objects(t, j, "nodes"))
	}
	entries, err := j.Next("chat", 0, 10)
	if err != nil || len(entries) != 2 || entries[0].Seq != 1 || entries[1].Seq != 2 || entries[1].ID != "2" {
		t.Errorf("events %+v, %v", entries, err)
	}
}

func TestWhatIsThereAlreadyIsNotWrittenAgain(t *testing.T) {
	j := begin(t, options())
	fill := func(b *Batch) { b.Seen("pods", key(1), seen(1)); b.Version("pods", "1") }
	commit(t, j, fill)
	commit(t, j, fill)
	if err := j.Ack("nobody", 1, 2); err != nil {
		t.Fatal(err)
	}
	if n := framesIn(t, j); n != 1 {
		t.Errorf("%d frames", n)
	}
}

// framesIn counts the frames of the file, each of which is one write.
func framesIn(t testing.TB, j *Journal) (n int) {
	t.Helper()
	data, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	for at := headerSize; at < len(data); n++ {
		at += frameHead + int(binary.BigEndian.Uint32(data[at:]))
	}
	return n
}
