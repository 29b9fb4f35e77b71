// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package assets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// wantLinks holds that the directory has a link to binary for each program, and nothing else.
func wantLinks(t *testing.T, dir, binary string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(programs) {
		t.Errorf("%s has %v, want %v", dir, entries, programs)
	}
	for _, name := range programs {
		if to, err := os.Readlink(filepath.Join(dir, name)); err != nil || to != binary {
			t.Errorf("%s leads to %q (%v), want %q", name, to, err, binary)
		}
	}
}

func TestLinksThatAreRightStayAndOthersAreReplaced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache", "links")
	const binary = "/opt/new/setpoint-controlplane"
	if err := link(dir, "/opt/old/setpoint-controlplane"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	if err := link(dir, binary); err != nil {
		t.Fatal(err)
	}
	wantLinks(t, dir, binary)
	before, err := os.Lstat(filepath.Join(dir, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	if err := link(dir, binary); err != nil {
		t.Fatal(err)
	}
	after, err := os.Lstat(filepath.Join(dir, "etcd"))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("a link that was right is another one now (%v)", err)
	}
}

func TestProgramsCanBeStartedWhileOtherProcessesMakeTheLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := link(dir, "/opt/0"); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	written := make(chan struct{})
	for i := range 4 {
		writers.Go(func() {
			for j := range 50 {
				if err := link(dir, fmt.Sprintf("/opt/%d", (i+j)%4)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		writers.Wait()
		close(written)
	}()
	for reading := true; reading; {
		select {
		case <-written:
			reading = false
		default:
		}
		for _, name := range programs {
			if to, err := os.Readlink(filepath.Join(dir, name)); err != nil || !strings.HasPrefix(to, "/opt/") {
				t.Fatalf("%s leads to %q: %v", name, to, err)
			}
		}
	}
	if err := link(dir, "/opt/last"); err != nil {
		t.Fatal(err)
	}
	wantLinks(t, dir, "/opt/last")
}

func TestALinkThatAKilledProcessLeftIsNoObstacle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left := filepath.Join(dir, fmt.Sprintf("etcd.%d-0", os.Getpid()))
	if err := os.Symlink("/opt/killed", left); err != nil {
		t.Fatal(err)
	}
	if err := link(dir, "/opt/setpoint-controlplane"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}
	wantLinks(t, dir, "/opt/setpoint-controlplane")
}

func TestADirectoryInThePlaceOfALinkIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "etcd", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := link(dir, "/opt/setpoint-controlplane")
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "etcd")) {
		t.Errorf("got %v, want an error that names %s", err, filepath.Join(dir, "etcd"))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "etcd.") {
			t.Errorf("%s was left", e.Name())
		}
	}
}

func TestEachPathOfABinaryHasADirectoryOfItsOwn(t *testing.T) {
	t.Parallel()
	one, other := directoryFor("/cache", "/opt/1/setpoint-controlplane"), directoryFor("/cache", "/opt/2/setpoint-controlplane")
	if one == other {
		t.Errorf("both are %s", one)
	}
	if again := directoryFor("/cache", "/opt/1/setpoint-controlplane"); again != one {
		t.Errorf("the same binary has %s and %s", one, again)
	}
}

func TestTheLineForAShellQuotesThePath(t *testing.T) {
	t.Parallel()
	got := lines["env"]("/home/o'neill/.cache/setpoint")
	if want := `export KUBEBUILDER_ASSETS='/home/o'\''neill/.cache/setpoint'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
