// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	crashers   = 4         // goroutines of a child that commit
	childFile  = "journal" // in the directory that a child is started in
	childTask  = "SETPOINT_JOURNAL_TEST_TASK"
	taskCommit = "commit"
	taskFull   = "full"
	taskMemory = "memory"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(childTask) {
	case taskCommit:
		err = commitUntilKilled(childFile)
	case taskFull:
		err = fillDisk(childFile)
	case taskMemory:
		err = memory(childFile)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(t testing.TB, task, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe)
	c.Env = append(os.Environ(), childTask+"="+task)
	c.Dir = filepath.Dir(path)
	c.Stderr = os.Stderr
	return c
}

// commitUntilKilled has some goroutines count, each with a cursor and a sink of its own.
// It prints what it knows to be on the disk ("c 0 17": writer 0 has committed 17) and what
// it is about to acknowledge ("a 0 12").
func commitUntilKilled(path string) error {
	j, damage, err := Open(path, Options{})
	if err != nil || damage != nil {
		return fmt.Errorf("%v, %w", damage, err)
	}
	var out sync.Mutex
	say := func(what string, g int, n uint64) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf("%s %d %d\n", what, g, n)
	}
	failed := make(chan error)
	for g := range crashers {
		name := fmt.Sprintf("w%d", g)
		version, _ := j.Selection(name)
		n, _ := strconv.ParseUint(version, 10, 64)
		go func() {
			var b Batch
			for {
				n++
				b.Reset()
				b.Event(name, fmt.Sprint(n), []byte(strings.Repeat(fmt.Sprint(n, ";"), int(n%700))))
				b.Seen(name, key(int(n%50)), Seen{Version: fmt.Sprint(n)})
				b.Version(name, fmt.Sprint(n))
				if err := j.Commit(&b); err != nil {
					failed <- err
					return
				}
				say("c", g, n)
			}
		}()
		if g%2 == 0 {
			go func() { failed <- acknowledge(j, name, func(n uint64) { say("a", g, n) }) }()
		}
	}
	return <-failed
}

func acknowledge(j *Journal, sink string, say func(uint64)) error {
	for range j.Wake(sink) {
		entries, err := j.Next(sink, 0, 3)
		if err != nil { // there may be none: what it was woken for went with those before
			return err
		}
		for _, e := range entries {
			n, _ := strconv.ParseUint(e.ID, 10, 64)
			say(n)
			if err := j.Ack(sink, e.Seq); err != nil {
				return err
			}
		}
	}
	return nil
}

// What a killed process leaves is what it had committed: each cursor agrees with its
// outbox, nothing is there by half, and nothing is missing that was said to be there.
func TestKilledProcessLeavesCursorAndOutboxAgreeing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	r := random(t)
	kills := 20
	if testing.Short() {
		kills = 4
	}
	var committed, acked [crashers]uint64
	for kill := range kills {
		c := child(t, taskCommit, path)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		// It begins to count when it has something to say. A kill before that is one in
		// the middle of Open.
		if kill%4 != 0 {
			lines.Scan()
			note(t, lines.Text(), &committed, &acked)
		}
		after := time.Duration(r.Int63n(int64(250 * time.Millisecond)))
		timer := time.AfterFunc(after, func() { _ = c.Process.Kill() })
		for lines.Scan() {
			note(t, lines.Text(), &committed, &acked)
		}
		timer.Stop()
		err = c.Wait()
		if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("the child was not killed: %v", err)
		}
		agree(t, path, committed, acked)
	}
	t.Logf("%d kills; committed %v, acknowledged %v", kills, committed, acked)
}

// Whatever a process leaves that is killed while it makes the file, there was nothing in it.
func TestKilledWhileItMakesTheFile(t *testing.T) {
	r := random(t)
	for range 20 {
		path := filepath.Join(t.TempDir(), "journal")
		c := child(t, taskCommit, path)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		awaitFile(t, path)
		time.Sleep(time.Duration(r.Int63n(int64(4 * time.Millisecond))))
		_ = c.Process.Kill()
		_ = c.Wait()
		j, damage, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if damage != nil && damage.Aside != "" {
			t.Error(damage)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}

// awaitFile waits until there is a file.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Microsecond) {
		switch _, err := os.Stat(path); {
		case err == nil:
			return
		case time.Now().After(end):
			t.Fatalf("there is no %s", path)
		}
	}
}

// note reads a line of the child. The last one may be cut short.
func note(t *testing.T, line string, committed, acked *[crashers]uint64) {
	t.Helper()
	var what string
	var g int
	var n uint64
	if _, err := fmt.Sscanf(line, "%s %d %d", &what, &g, &n); err != nil || g >= crashers {
		return
	}
	if what == "c" {
		committed[g] = max(committed[g], n)
	} else {
		acked[g] = max(acked[g], n)
	}
}

func agree(t *testing.T, path string, committed, acked [crashers]uint64) {
	t.Helper()
	j, damage, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	// Killed between making the file and writing its first page.
	if damage != nil && (!errors.Is(damage.Reason, errEmpty) || committed != [crashers]uint64{}) {
		t.Fatal(damage)
	}
	for g := range crashers {
		name := fmt.Sprintf("w%d", g)
		version, _ := j.Selection(name)
		upTo, _ := strconv.ParseUint(version, 10, 64)
		if upTo < committed[g] {
			t.Errorf("%s: the cursor is at %d, and %d was committed", name, upTo, committed[g])
		}
		waiting := ids(t, j, name)
		from := upTo - uint64(len(waiting))
		if from > acked[g] {
			t.Errorf("%s: %d are gone from the outbox, and %d were acknowledged", name, from, acked[g])
		}
		for i, id := range waiting {
			if id != fmt.Sprint(from+uint64(i)+1) {
				t.Fatalf("%s: event %s waits behind %d others, the cursor is at %d", name, id, i, upTo)
			}
		}
		for k, s := range objects(t, j, name) {
			if n, _ := strconv.ParseUint(s.Version, 10, 64); n > upTo || upTo-n >= 50 || k != key(int(n%50)) {
				t.Errorf("%s: object %s is of %d, the cursor is at %d", name, k, n, upTo)
			}
		}
		entries, err := j.Next(name, 0, math.MaxInt)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			n, _ := strconv.Atoi(e.ID)
			if string(e.Data) != strings.Repeat(fmt.Sprint(e.ID, ";"), n%700) {
				t.Errorf("%s: event %s is not as it was committed", name, e.ID)
			}
		}
	}
}
