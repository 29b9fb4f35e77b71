// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// stranger is another user than the one who runs the tests, and not root.
func stranger() user { return me() + 4711 }

func write(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte("precious"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantNotOwn(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrNotOwn) {
		t.Errorf("%s: the error is %v, want ErrNotOwn", what, err)
	}
}

func wantUntouched(t *testing.T, path string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != "precious" {
		t.Errorf("%s now holds %q, %v", path, got, err)
	}
}

// opener makes path a file of a user who is neither root nor the one who opens it, and
// returns the one who opens it: as root by giving it away, else by opening it as somebody else.
func opener(t *testing.T, path string) user {
	t.Helper()
	if os.Geteuid() != 0 {
		return stranger()
	}
	must(t, os.Lchown(path, int(stranger()), -1))
	return me()
}

func TestADirectoryOfAnotherUserIsRefused(t *testing.T) {
	dir := t.TempDir()
	u := opener(t, dir)
	_, err := u.openDir(dir)
	wantNotOwn(t, "the directory", err)
	_, err = u.openPrivate(dir)
	wantNotOwn(t, "the directory as a private one", err)
}

func TestADirectoryBelowOneOfAnotherUserIsRefused(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "data")
	must(t, os.Mkdir(dir, 0o700))
	_, err := OpenDir(dir)
	must(t, err)
	u := opener(t, parent)
	_, err = u.openDir(dir)
	wantNotOwn(t, "the directory", err)
}

func TestADirectoryThatEverybodyMayRenameIsRefused(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "data")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chmod(parent, 0o777)) //nolint:gosec // what is refused
	_, err := OpenDir(dir)
	wantNotOwn(t, "below a directory for everybody", err)
	must(t, os.Chmod(parent, 0o777|fs.ModeSticky))
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatalf("below a sticky one: %v", err)
	}
	must(t, d.Close())
}

func TestALinkOfAnotherUserIsRefused(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	d, err := OpenDir(link)
	if err != nil || d.Path() != dir {
		t.Fatalf("the user's own link leads to %v, %v", d, err)
	}
	_, err = opener(t, link).openDir(link)
	wantNotOwn(t, "a link", err)
}

func TestOnlyAPrivateDirectoryIsPrivate(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700)) //nolint:gosec // a directory
	d, err := OpenPrivate(dir)
	must(t, err)
	must(t, d.Close())
	must(t, os.Chmod(dir, 0o710)) //nolint:gosec // what is refused
	_, err = OpenPrivate(dir)
	wantNotOwn(t, "mode 0710", err)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	_, err = OpenPrivate(link)
	wantNotOwn(t, "a link", err)
}

// The traps that another user may have set in a directory before it was closed to him.
func TestWhatIsNoPlainFileIsNeitherReadNorTruncated(t *testing.T) {
	victim := write(t, filepath.Join(t.TempDir(), "victim"), 0o600)
	for name, set := range map[string]func(path string) error{
		"symbolic link":   func(path string) error { return os.Symlink(victim, path) },
		"dangling link":   func(path string) error { return os.Symlink(victim+".new", path) },
		"hard link":       func(path string) error { return os.Link(victim, path) },
		"pipe":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":       func(path string) error { return os.Mkdir(path, 0o700) },
		"writable by all": func(path string) error { write(t, path, 0o666); return nil },
		"link to a file in the directory": func(path string) error {
			return os.Symlink(filepath.Base(write(t, path+".target", 0o600)), path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d, err := OpenDir(dir)
			must(t, err)
			defer d.Close()
			must(t, set(filepath.Join(dir, "trap")))
			_, err = d.Open("trap", os.O_RDWR|os.O_CREATE|os.O_TRUNC)
			wantNotOwn(t, "opening it to write", err)
			_, err = d.Read("trap", 1<<10)
			wantNotOwn(t, "reading it", err)
			wantUntouched(t, victim)
			if _, err := os.Lstat(victim + ".new"); err == nil {
				t.Error("a link was followed to make a file")
			}
		})
	}
}

func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "file"), 0o600)
	u := opener(t, path)
	_, err := u.open(path, os.O_RDONLY)
	wantNotOwn(t, "the file", err)
	d, err := OpenDir(dir)
	must(t, err)
	defer d.Close()
	d.u = u
	_, err = d.Open("file", os.O_RDWR|os.O_TRUNC)
	wantNotOwn(t, "the file in its directory", err)
	wantUntouched(t, path)
}

func TestAFileIsOpenedAndMade(t *testing.T) {
	d, err := OpenDir(t.TempDir())
	must(t, err)
	defer d.Close()
	f, err := d.Open("new", os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("a new file has mode %04o", info.Mode().Perm())
	}
	_, err = f.WriteString("precious")
	must(t, errors.Join(err, f.Close()))
	wantUntouched(t, filepath.Join(d.Path(), "new"))
	if got, err := d.Read("new", 8); err != nil || string(got) != "precious" {
		t.Errorf("it reads %q, %v", got, err)
	}
	if _, err := d.Read("new", 7); err == nil {
		t.Error("a file that is too large was read")
	}
	f, err = d.Open("new", os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	must(t, err)
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("after O_TRUNC there are %d bytes, %v", info.Size(), err)
	}
	must(t, f.Close())
	if _, err := d.Open("none", os.O_RDONLY); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error of a missing file is %v", err)
	}
}

func TestSubdirectoriesMustBeOwnToo(t *testing.T) {
	d, err := OpenDir(t.TempDir())
	must(t, err)
	defer d.Close()
	made, err := d.Sub("pki")
	must(t, err)
	if mode, err := made.Mode(); err != nil || mode != 0o700 {
		t.Errorf("a new one has mode %04o, %v", mode, err)
	}
	must(t, made.Close())
	must(t, os.Symlink("pki", filepath.Join(d.Path(), "link")))
	_, err = d.Sub("link")
	wantNotOwn(t, "a link", err)
	must(t, os.Chmod(filepath.Join(d.Path(), "pki"), 0o770)) //nolint:gosec // what is refused
	_, err = d.Sub("pki")
	wantNotOwn(t, "writable by the group", err)
}

func TestAllIsRemovedButWhatALinkLeadsTo(t *testing.T) {
	victim := write(t, filepath.Join(t.TempDir(), "victim"), 0o600)
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	d, err := OpenPrivate(dir)
	must(t, err)
	defer d.Close()
	write(t, filepath.Join(dir, "sub", "file"), 0o600)
	write(t, filepath.Join(dir, "lock"), 0o600)
	must(t, os.Symlink(filepath.Dir(victim), filepath.Join(dir, "sub", "link")))
	must(t, d.RemoveAll("lock"))
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	wantUntouched(t, victim)
}

func TestTightenTakesThePermissionsOfOthers(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "file"), 0o664)
	f, err := Open(path, os.O_RDWR)
	must(t, err)
	defer f.Close()
	if done, err := Tighten(f); !done || err != nil {
		t.Errorf("Tighten is %t, %v", done, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}
