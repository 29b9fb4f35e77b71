// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
)

// rotatingFile is a sink of a file that two events rotate.
func rotatingFile(t *testing.T) (f *file, events []*event.Event) {
	t.Helper()
	s, err := (&File{Path: filepath.Join(t.TempDir(), "events.json"), MaxSizeMB: 1}).sink(Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f, ok := s.(*file)
	if !ok {
		t.Fatalf("it is a %T", s)
	}
	for _, id := range []string{"e1", "e2"} {
		events = append(events, &event.Event{ID: id, Summary: strings.Repeat("x", 600<<10)})
	}
	return f, events
}

func TestAFileIsOnTheDiskBeforeItIsRotated(t *testing.T) {
	f, events := rotatingFile(t)
	var synced []os.FileInfo
	f.toDisk = func(handle *os.File) error {
		info, err := handle.Stat()
		synced = append(synced, info)
		return errors.Join(err, handle.Sync())
	}
	if r := f.Send(t.Context(), events); r.Done != 2 || r.Err != nil {
		t.Fatalf("%+v", r)
	}
	rotated, err := filepath.Glob(filepath.Join(filepath.Dir(f.path), "events-*.json"))
	if err != nil || len(rotated) != 1 {
		t.Fatal(err, rotated)
	}
	for _, path := range append(rotated, f.path) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(synced, func(s os.FileInfo) bool { return os.SameFile(s, info) && s.Size() == info.Size() }) {
			t.Errorf("%s was not written to the disk", path)
		}
	}
}

func TestEventsThatTheDiskDoesNotTakeAreNotDone(t *testing.T) {
	f, events := rotatingFile(t)
	broken := errors.New("input/output error")
	times := 0
	f.toDisk = func(*os.File) error {
		if times++; times == 2 {
			return broken
		}
		return nil
	}
	if r := f.Send(t.Context(), events); r.Done != 1 || !errors.Is(r.Err, broken) || !strings.Contains(r.Err.Error(), "making sure that events are on the disk") {
		t.Errorf("done %d, error %v; want the first one done, and that of the disk", r.Done, r.Err)
	}
}
