// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Acknowledgements are in the file once Ack has returned, as a killed process leaves it, and the next commit has them, too. A loss of
// power may cut them off, which is no damage.
func TestAcknowledgementsWithoutASync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := Open(path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	event := func(id string) {
		t.Helper()
		commit(t, j, func(b *Batch) { b.Event("chat", id, []byte("event "+id)) })
	}
	ack := func(seqs ...uint64) {
		t.Helper()
		if err := j.Ack("chat", seqs...); err != nil {
			t.Fatal(err)
		}
	}
	// left returns the events that wait in the file as it is, cut off after so many bytes.
	left := func(bytes int64) []string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		if err := os.WriteFile(copied, data[:min(bytes, int64(len(data)))], 0o600); err != nil { //nolint:gosec // a folder of the test
			t.Fatal(err)
		}
		other, damage, err := Open(copied, options())
		if err != nil || damage != nil {
			t.Fatal(damage, err)
		}
		defer func() { _ = other.Close() }()
		return ids(t, other, "chat")
	}
	const whole = 1 << 30
	want := func(when string, bytes int64, want ...string) {
		t.Helper()
		if got := left(bytes); !slices.Equal(got, want) {
			t.Errorf("%s: %q wait in the file, want %q", when, got, want)
		}
	}
	event("1")
	event("2")
	event("3")
	synced := j.end
	ack(1)
	ack(2)
	if j.end != synced {
		t.Error("acknowledgements were synced")
	}
	want("after two acknowledgements", whole, "3")
	want("without the frame of both", synced, "1", "2", "3")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	want("with a part of it", info.Size()-1, "1", "2", "3")
	event("4")
	if j.end == synced {
		t.Error("an event was not synced")
	}
	want("after the next event", whole, "3", "4")
	if got := ids(t, j, "chat"); !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("%q wait, want 3 and 4", got)
	}
	ack(3)
	commit(t, j, func(b *Batch) { b.Version("pods", "5") })
	ack(4)
	if err := j.rewrite(); err != nil {
		t.Fatal(err)
	}
	want("in a file that was rewritten", whole)
	event("5")
	want("behind that", whole, "5")
	if j.state.sinks["chat"].missing != 0 {
		t.Error("events are missing")
	}
}
