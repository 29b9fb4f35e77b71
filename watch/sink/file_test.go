// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/ownfile"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

func fileSink(t *testing.T, o sink.File) sink.Sink {
	t.Helper()
	s, err := sink.New("file", sink.Options{File: &o}, sink.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lines returns the IDs of the events in files, and "?" for a line that is none.
func lines(t *testing.T, paths ...string) string {
	t.Helper()
	var ids []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			if e, err := event.Decode(line); err != nil {
				ids = append(ids, "?")
			} else {
				ids = append(ids, e.ID)
			}
		}
	}
	return strings.Join(ids, " ")
}

func TestAFileHasALineForEachEventAndIsForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	s := fileSink(t, sink.File{Path: path})
	for n := range 3 {
		if r := s.Send(t.Context(), []*event.Event{made(2 * n), made(2*n + 1)}); r.Done != 2 || r.Err != nil {
			t.Fatalf("%+v", r)
		}
	}
	if got := lines(t, path); got != "e0 e1 e2 e3 e4 e5" {
		t.Error(got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(err, info.Mode())
	}
}

func TestALineThatWasCutOffDoesNotSpoilTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	if err := os.WriteFile(path, []byte(`{"schema":"set`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := fileSink(t, sink.File{Path: path})
	if r := s.Send(t.Context(), []*event.Event{made(1)}); r.Done != 1 {
		t.Fatalf("%+v", r)
	}
	if got := lines(t, path); got != "? e1" {
		t.Error(got)
	}
}

func TestAFileIsRotatedAndAnEventThatIsTooLargeForItIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "events.json")
	s := fileSink(t, sink.File{Path: path, MaxSizeMB: 1})
	large := func(n, size int) *event.Event {
		e := made(n)
		e.Summary = strings.Repeat("x", size)
		return e
	}
	r := s.Send(t.Context(), []*event.Event{large(1, 600<<10), large(2, 2<<20), large(3, 600<<10), made(4)})
	if r.Done != 4 || r.Err != nil || len(r.Refused) != 1 || r.Refused[0].Index != 1 || !strings.Contains(r.Refused[0].Err.Error(), "maxSizeMB") {
		t.Fatalf("%+v", r)
	}
	rotated, err := filepath.Glob(filepath.Join(dir, "events-*.json"))
	if err != nil || len(rotated) != 1 {
		t.Fatal(err, rotated)
	}
	if got := lines(t, rotated[0], path); got != "e1 e3 e4" {
		t.Error(got)
	}
}

func TestAFileThatSomebodyTookAwayIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	s := fileSink(t, sink.File{Path: path})
	s.Send(t.Context(), []*event.Event{made(1)})
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if r := s.Send(t.Context(), []*event.Event{made(2)}); r.Done != 1 || r.Err != nil {
		t.Fatalf("%+v", r)
	}
	if got := lines(t, path+".1", path); got != "e1 e2" {
		t.Error(got)
	}
}

func TestAFileThatCannotBeWrittenIsToldAtTheStart(t *testing.T) {
	dir := t.TempDir()
	for path, says := range map[string]string{
		dir:                                "is not a regular file",
		filepath.Join(dir, "none", "file"): "no such file or directory; its folder must be there",
		"/dev/null":                        "is not a regular file",
	} {
		_, err := sink.New("log", sink.Options{File: &sink.File{Path: path}}, sink.Deps{})
		if err == nil || !strings.HasPrefix(err.Error(), "sink log: file.path: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A file sink must not write to what another user has planted under its name.
func TestAFileOrALinkOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	plant := map[string]func(t *testing.T, path, victim string){
		"a link": func(t *testing.T, path, victim string) {
			if err := errors.Join(os.Symlink(victim, path), os.Lchown(path, 65534, 65534)); err != nil {
				t.Fatal(err)
			}
		},
		"a link to nothing": func(t *testing.T, path, victim string) {
			if err := errors.Join(os.Symlink(victim+".new", path), os.Lchown(path, 65534, 65534)); err != nil {
				t.Fatal(err)
			}
		},
		"a file": func(t *testing.T, path, _ string) {
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 65534, 65534)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, set := range plant {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, victim := filepath.Join(dir, "events.json"), filepath.Join(t.TempDir(), "victim")
			if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			untouched := func() {
				t.Helper()
				if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
					t.Errorf("the victim holds %q, %v", got, err)
				}
				if _, err := os.Lstat(victim + ".new"); err == nil {
					t.Error("a link was followed to make a file")
				}
			}
			set(t, path, victim)
			_, err := sink.New("log", sink.Options{File: &sink.File{Path: path}}, sink.Deps{})
			if !errors.Is(err, ownfile.ErrNotOwn) || !strings.HasPrefix(err.Error(), "sink log: file.path: ") {
				t.Errorf("at the start: %v", err)
			}
			untouched()
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			// The same while it runs, in the place of a file that was moved away.
			s := fileSink(t, sink.File{Path: path})
			if r := s.Send(t.Context(), []*event.Event{made(1)}); r.Done != 1 || r.Err != nil {
				t.Fatalf("%+v", r)
			}
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
			set(t, path, victim)
			if r := s.Send(t.Context(), []*event.Event{made(2)}); r.Done != 0 || !errors.Is(r.Err, ownfile.ErrNotOwn) {
				t.Errorf("while it runs: %+v", r)
			}
			untouched()
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if r := s.Send(t.Context(), []*event.Event{made(2)}); r.Done != 1 || r.Err != nil {
				t.Errorf("after it was removed: %+v", r)
			}
			if got := lines(t, path+".1", path); got != "e1 e2" {
				t.Error(got)
			}
		})
	}
}

// tearing is a writer that takes half of what it is given, until it is well.
type tearing struct {
	bytes.Buffer
	ill bool
}

func (w *tearing) Write(p []byte) (int, error) {
	if w.ill {
		n, _ := w.Buffer.Write(p[:len(p)/2])
		return n, errors.New("no space left")
	}
	return w.Buffer.Write(p)
}

func TestAWriteThatFailsHalfwayIsTriedAgainOnALineOfItsOwn(t *testing.T) {
	w := &tearing{ill: true}
	s, err := sink.New("term", sink.Options{Terminal: &sink.Terminal{Form: "json"}}, sink.Deps{Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Send(t.Context(), []*event.Event{made(1)}); r.Done != 0 || r.Err == nil || !strings.Contains(r.Err.Error(), "no space left") {
		t.Fatalf("%+v", r)
	}
	w.ill = false
	unwritable := made(2)
	unwritable.Fields = []event.Field{{Path: "x", To: func() {}}}
	if r := s.Send(t.Context(), []*event.Event{made(1), unwritable, made(3)}); r.Done != 3 || r.Err != nil || len(r.Refused) != 1 || r.Refused[0].Index != 1 {
		t.Fatalf("%+v", r)
	}
	written := strings.Split(strings.TrimSuffix(w.String(), "\n"), "\n")
	if len(written) != 3 || !strings.Contains(written[1], `"id":"e1"`) || !strings.Contains(written[2], `"id":"e3"`) {
		t.Errorf("%q", written)
	}
	if _, err := sink.New("term", sink.Options{Terminal: &sink.Terminal{}}, sink.Deps{}); err == nil {
		t.Error("a terminal without one")
	}
}
