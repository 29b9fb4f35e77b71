// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race && !msan && !asan

package quiet

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func pipe(t *testing.T) (in, out *os.File) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	return in, out
}

// An ordinary file blocks: the calls that os.NewFile makes for standard output are not those of os.Pipe.
func TestAPipeTakesWhatItHasRoomForAlsoIfItBlocks(t *testing.T) {
	in, end := pipe(t)
	out := os.NewFile(end.Fd(), "standard output") // Fd makes it one that blocks
	p := NewPipe(out)
	if p.Write([]byte("a line\n")) == 0 {
		t.Skip("this kernel cannot write to a pipe without a wait")
	}
	line := bytes.Repeat([]byte("x"), 5000)
	total := len("a line\n")
	for range 1000 {
		n := p.Write(line)
		if total += n; n == 0 {
			break
		}
	}
	if p.Write(line) != 0 {
		t.Fatal("the pipe takes more than five megabytes")
	}
	got, err := io.ReadAll(io.LimitReader(in, int64(total)))
	if err != nil || len(got) != total || !bytes.HasPrefix(got, []byte("a line\nxxx")) {
		t.Errorf("%d of %d bytes came: %v", len(got), total, err)
	}
	if n := p.Write(line); n != len(line) {
		t.Errorf("%d bytes were written when there was room again", n)
	}
}

func TestWhatCannotBeWrittenAtOnceIsLeft(t *testing.T) {
	in, out := pipe(t)
	_ = in.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, closed := pipe(t)
	gone := NewPipe(closed)
	_ = closed.Close()
	for name, p := range map[string]*Pipe{"nobody reads": NewPipe(out), "a file": NewPipe(file), "closed": gone} {
		if n := p.Write([]byte("x")); n != 0 {
			t.Errorf("%s: %d bytes were written", name, n)
		}
	}
	if _, err := out.WriteString("x"); err == nil {
		t.Error("the ordinary write does not say that nobody reads")
	}
	if n := NewPipe(file).Write(nil); n != 0 {
		t.Errorf("of nothing, %d bytes", n)
	}
}
