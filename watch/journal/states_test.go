// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
)

func withStates() Options {
	o := options()
	o.States = true
	return o
}

// stated is what was seen of an object, with its state.
func stated(i int) Seen {
	s := seen(i)
	s.State = fmt.Sprintf("the state of %d", i)
	return s
}

// fileWithStates returns a file with a dictionary and states.
func fileWithStates(t testing.TB) []byte {
	t.Helper()
	j := begin(t, withStates())
	commit(t, j, func(b *Batch) {
		b.Dictionary("pods", []byte("words"))
		for i := range 5 {
			b.Seen("pods", key(i), stated(i))
		}
		b.Version("pods", "1")
	})
	closeJournal(t, j)
	return read(t, j.path)
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wantState checks what a journal has of an object.
func wantState(t *testing.T, j *Journal, i int, want Seen) {
	t.Helper()
	if got, known, err := j.Get("pods", key(i)); err != nil || !known || got != want {
		t.Errorf("object %d is %+v, %t, %v; want %+v", i, got, known, err, want)
	}
}

func TestStatesAreKept(t *testing.T) {
	j := begin(t, withStates())
	commit(t, j, func(b *Batch) {
		b.Dictionary("pods", []byte("words"))
		b.Seen("pods", key(1), stated(1))
		b.Seen("pods", key(2), seen(2))
		b.Version("pods", "1")
	})
	check := func(j *Journal) {
		t.Helper()
		wantState(t, j, 1, stated(1))
		wantState(t, j, 2, seen(2))
		if words, err := j.Dictionary("pods"); err != nil || string(words) != "words" {
			t.Errorf("the dictionary is %q, %v", words, err)
		}
		if words, err := j.Dictionary("nodes"); err != nil || words != nil {
			t.Errorf("another selection has the dictionary %q, %v", words, err)
		}
		all, failed := j.Objects("pods")
		for key, s := range all {
			if s.State != "" {
				t.Errorf("the state of %s is in the list", key)
			}
		}
		if err := failed(); err != nil {
			t.Error(err)
		}
	}
	check(j)
	if err := j.rewrite(); err != nil {
		t.Fatal(err)
	}
	check(j)
	closeJournal(t, j)
	if !bytes.HasPrefix(read(t, j.path), []byte("setpoint-watch journal 3\n")) {
		t.Error("an older program would take the file for its own")
	}
	j = reopen(t, j.path, withStates())
	check(j)
	commit(t, j, func(b *Batch) { b.Drop("pods") })
	if words, err := j.Dictionary("pods"); err != nil || words != nil || j.state.bytes != 0 || j.state.objects != 0 {
		t.Errorf("after a drop the dictionary is %q, %v; %d bytes count, %d of objects", words, err, j.state.bytes, j.state.objects)
	}
}

// A user who takes the flag away wants the states away too.
func TestStatesAreRemovedWhenTheyAreNotWanted(t *testing.T) {
	j := begin(t, withStates())
	commit(t, j, func(b *Batch) {
		b.Dictionary("pods", []byte("words"))
		b.Seen("pods", key(1), stated(1))
		b.Event("chat", "1", []byte("hello"))
	})
	closeJournal(t, j)
	j = reopen(t, j.path, options())
	commit(t, j, func(b *Batch) {
		b.Dictionary("pods", []byte("words"))
		b.Seen("pods", key(2), stated(2))
	})
	wantState(t, j, 1, seen(1))
	wantState(t, j, 2, seen(2))
	if entries, err := j.Next("chat", 0, 9); err != nil || len(entries) != 1 {
		t.Errorf("%d events wait, %v", len(entries), err)
	}
	closeJournal(t, j)
	data := read(t, j.path)
	if bytes.Contains(data, []byte("the state of")) || bytes.Contains(data, []byte("words")) || !bytes.HasPrefix(data, []byte("setpoint-watch journal 2\n")) {
		t.Errorf("the file has states, or the format of states: %q", data)
	}
	// And back.
	j = reopen(t, j.path, withStates())
	commit(t, j, func(b *Batch) { b.Seen("pods", key(1), stated(1)) })
	wantState(t, j, 1, stated(1))
	wantState(t, j, 2, seen(2))
}

func TestStatesAreBounded(t *testing.T) {
	o := withStates()
	o.limitState = 1000
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	j := begin(t, o)
	for i := range 20 {
		commit(t, j, func(b *Batch) { b.Seen("pods", key(i), stated(i)) })
	}
	wantState(t, j, 0, stated(0))
	wantState(t, j, 19, seen(19))
	if n := strings.Count(log.String(), "the journal has no room for more states of objects"); n != 1 {
		t.Errorf("the log has it %d times: %s", n, &log)
	}
	for i := range 15 {
		commit(t, j, func(b *Batch) { b.Forget("pods", key(i)) })
	}
	commit(t, j, func(b *Batch) { b.Seen("pods", key(19), stated(19)) })
	wantState(t, j, 19, stated(19))

	var b Batch
	b.Seen("pods", key(1), Seen{State: strings.Repeat("x", MaxState+1)})
	if err := j.Commit(&b); err == nil || !strings.Contains(err.Error(), "its state has more than 1048576 bytes") {
		t.Errorf("a state that is too large: %v", err)
	}
}

// Damage is found in a file with states as in any other.
func TestAFileWithStatesThatIsDamagedKeepsTheOthers(t *testing.T) {
	whole := fileWithStates(t)
	for at := headerSize; at < len(whole); at += 7 {
		data := bytes.Clone(whole)
		data[at] ^= 0x10
		path := t.TempDir() + "/journal"
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		j, _, err := Open(path, withStates())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if got, known, err := j.Get("pods", key(i)); err != nil || known && got != stated(i) {
				t.Errorf("byte %d: object %d is %+v, %v", at, i, got, err)
			}
		}
		closeJournal(t, j)
	}
}
