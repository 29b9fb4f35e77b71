// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package journal

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fillDisk commits until no file may grow any more, and then again when they may.
func fillDisk(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	j, damage, err := Open(path, Options{})
	if err != nil || damage != nil {
		return fmt.Errorf("%v, %w", damage, err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	most := limit.Cur
	var b Batch
	n := 0
	for _, size := range []uint64{200_000, 1_000_000, 5_000_000, 100_000} {
		limit.Cur = size
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		for err = nil; err == nil; n++ {
			b.Reset()
			b.Event("chat", fmt.Sprint(n), make([]byte, 20_000))
			b.Version("pods", fmt.Sprint(n))
			err = j.Commit(&b)
			if n > 1000 {
				return errors.New("the file never ends")
			}
		}
		n--
		if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "make room") {
			return fmt.Errorf("the error does not say what to do: %w", err)
		}
		fmt.Println(err)
		// As it was before: to be read, and to be acknowledged as far as there is room.
		if v, _ := j.Selection("pods"); v != fmt.Sprint(n-1) {
			return fmt.Errorf("the cursor is at %s after a commit of %d that failed", v, n)
		}
		if _, err := j.Next("chat", 0, 10); err != nil {
			return err
		}
		limit.Cur = most
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		if err := j.Commit(&b); err != nil {
			return fmt.Errorf("there is room, and yet: %w", err)
		}
		n++
	}
	return j.Close()
}

func TestDiskThatIsFullIsAnErrorThatPasses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	out, err := child(t, taskFull, path).Output()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(out), "make room") != 4 {
		t.Error("no error was printed")
	}
	info, _ := os.Stat(path)
	j := reopen(t, path, options())
	all := ids(t, j, "chat")
	for i, id := range all {
		if id != fmt.Sprint(i) {
			t.Fatalf("event %s at %d", id, i)
		}
	}
	if v, _ := j.Selection("pods"); v != fmt.Sprint(len(all)-1) {
		t.Errorf("cursor %s, %d events", v, len(all))
	}
	t.Logf("%d events of 20 kB, file %d bytes", len(all), info.Size())
}
