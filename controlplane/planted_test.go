// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/ownfile"
)

const precious = "do not touch"

func victim(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "victim")
	put(t, path, precious)
	return path
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func wantUntouched(t *testing.T, path string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != precious {
		t.Errorf("%s now holds %q, %v", path, got, err)
	}
}

// giveAway makes everything below a directory another user's, which only root can do.
func giveAway(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 65534, 65534)) //nolint:gosec // nobody else has a way into it
	})
	if err != nil {
		t.Fatal(err)
	}
}

// plant makes a directory that looks as if an earlier control plane had left it.
func plant(t *testing.T, tmp string) string {
	t.Helper()
	dir := filepath.Join(tmp, temporaryPrefix+"planted")
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, markerFile), markerOfNow(t))
	return dir
}

func markerOfNow(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(currentMarker())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Anybody may make a directory in the temporary directory, and anything in it.
func TestTheSweepFollowsNothingThatAnotherUserHasPlanted(t *testing.T) {
	for name, trap := range map[string]func(victim, lock string) error{
		"symbolic link": os.Symlink,
		"hard link":     os.Link,
		"pipe":          func(_, lock string) error { return syscall.Mkfifo(lock, 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			tmp, file := t.TempDir(), victim(t)
			t.Setenv("TMPDIR", tmp)
			dir := plant(t, tmp)
			if err := trap(file, filepath.Join(dir, lockFile)); err != nil {
				t.Fatal(err)
			}
			if name != "hard link" { // its owner is the victim's
				giveAway(t, dir)
			}
			within(t, sweepTemporary)
			wantUntouched(t, file)
			if _, err := os.Stat(filepath.Join(dir, markerFile)); err != nil {
				t.Errorf("the sweep removed what is not this user's: %v", err)
			}
		})
	}
}

// A link in a directory of this user is not followed either.
func TestTheSweepFollowsNoLinkInADirectoryOfItsOwn(t *testing.T) {
	tmp, file := t.TempDir(), victim(t)
	t.Setenv("TMPDIR", tmp)
	dir := plant(t, tmp)
	if err := errors.Join(os.Symlink(file, filepath.Join(dir, lockFile)), os.Chmod(dir, 0o700)); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	within(t, sweepTemporary)
	wantUntouched(t, file)
}

func TestTheSweepRemovesWhatAnEarlierProcessLeft(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	dir := plant(t, tmp)
	put(t, filepath.Join(dir, lockFile), "1\n")
	if err := errors.Join(os.Chmod(dir, 0o700), os.MkdirAll(filepath.Join(dir, "etcd", "member"), 0o700)); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	sweepTemporary()
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(deadline):
		t.Fatalf("it does not return within %s", deadline)
	}
}

// Keys that another user may have put there are keys that he knows.
func TestADataDirectoryThatOthersCouldFillIsRefusedAndUntouched(t *testing.T) {
	t.Run("writable by all", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "pki"), 0o755); err != nil { //nolint:gosec // as an attacker would
			t.Fatal(err)
		}
		if _, err := openPKI(ownDir(t, filepath.Join(dir, "pki")), nil, time.Now); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // as a careless user would
			t.Fatal(err)
		}
		err := openThatFails(t, dir)
		checkError(t, err, ErrUntrustedDataDir, dir, "0777", "choose a new directory")
		if _, err := os.Lstat(filepath.Join(dir, lockFile)); err == nil {
			t.Error("a refused directory was written to")
		}
	})
	t.Run("of another user", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("only root can give a directory away")
		}
		dir := t.TempDir()
		giveAway(t, dir)
		checkError(t, openThatFails(t, dir), ErrUntrustedDataDir, dir, "user 65534 owns it")
	})
	for _, name := range []string{"pki", "etcd", lockFile, markerFile, logFile} {
		t.Run("a link as "+name, func(t *testing.T) {
			dir, file := t.TempDir(), victim(t)
			if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
				t.Fatal(err)
			}
			if name != markerFile {
				put(t, filepath.Join(dir, markerFile), markerOfNow(t))
			}
			target := file
			if name == "pki" || name == "etcd" {
				target = filepath.Dir(file)
			}
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			err := openThatFails(t, dir)
			checkError(t, err, ErrUntrustedDataDir, filepath.Join(dir, name))
			wantUntouched(t, file)
		})
	}
	t.Run("another's keys", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, markerFile), markerOfNow(t))
		pki := filepath.Join(dir, "pki")
		if err := os.Mkdir(pki, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := openPKI(ownDir(t, pki), nil, time.Now); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"ca.crt", "ca.key", "front-proxy-ca.key", "sa.key"} {
			path := filepath.Join(pki, file)
			if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // as an attacker would
				t.Fatal(err)
			}
			_, err := openPKI(ownDir(t, pki), nil, time.Now)
			checkError(t, err, ownfile.ErrNotOwn, path)
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// openThatFails opens a data directory and its log, which must be refused.
func openThatFails(t *testing.T, dir string) error {
	t.Helper()
	d, err := openDataDir(dir, plenty)
	if err != nil {
		return err
	}
	_, err = d.openLog()
	if closed := d.close(); closed != nil {
		t.Error(closed)
	}
	if err == nil {
		t.Fatal("it was accepted")
	}
	return err
}

// An empty directory that the user's own umask made is closed to others, and used.
func TestAnEmptyDirectoryIsClosedToOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o775); err != nil { //nolint:gosec // as umask 002 makes it
		t.Fatal(err)
	}
	d, err := openDataDir(dir, plenty)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.close() }()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

func TestALogFileIsEmptiedAtEachStart(t *testing.T) {
	d, err := openDataDir(t.TempDir(), plenty)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.close() }()
	put(t, filepath.Join(d.path, logFile), strings.Repeat("old", 100))
	if _, err := d.openLog(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(d.path, logFile)); err != nil || len(got) != 0 {
		t.Errorf("it holds %q, %v", got, err)
	}
}

// ownDir opens a directory of the test's, which ends with it.
func ownDir(t *testing.T, path string) *ownfile.Dir {
	t.Helper()
	d, err := ownfile.OpenDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}
