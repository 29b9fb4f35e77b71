// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/setpoint-io/setpoint/internal/filelock"
	"github.com/setpoint-io/setpoint/internal/ownfile"
)

// openLocked returns the file at path, with its lock. Fresh says that it was not there.
func openLocked(path string, wait time.Duration) (f *os.File, fresh bool, err error) {
	deadline := time.Now().Add(wait)
	for {
		f, fresh, err = openFile(path)
		if err != nil {
			return nil, false, err
		}
		err = lockFile(f, deadline)
		if err != nil {
			_ = f.Close()
			return nil, false, err
		}
		// The process that had the lock may have set this file aside and begun another.
		mine, err := f.Stat()
		if err != nil {
			_ = f.Close()
			return nil, false, err
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			return f, fresh, nil
		}
		_ = f.Close()
	}
}

// lockPoll is how often a lock is tried that another process holds.
const lockPoll = 20 * time.Millisecond

// lockFile locks an open file until it is closed. It tries until the deadline.
func lockFile(f *os.File, deadline time.Time) error {
	for {
		switch locked, err := filelock.Try(f); {
		case errors.Is(err, errors.ErrUnsupported):
			return fmt.Errorf("locking it: %w; without locks two processes could write to one journal", err)
		case err != nil:
			return fmt.Errorf("locking it: %w", err)
		case locked:
			return nil
		case !time.Now().Before(deadline):
			return ErrLocked
		}
		time.Sleep(lockPoll)
	}
}

func openFile(path string) (f *os.File, fresh bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f, true, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, fmt.Errorf("there is no directory %s: make it first", filepath.Dir(path))
		}
		return nil, false, err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("it is no regular file (%s)", info.Mode().Type())
	}
	f, err = ownfile.Open(path, os.O_RDWR)
	if errors.Is(err, ownfile.ErrNotOwn) {
		return nil, false, fmt.Errorf("%w; name another file, or chown this one", err)
	}
	if err != nil {
		return nil, false, err
	}
	return f, false, nil
}

// setAside gives a damaged file another name, and returns it. Another file is to take its place.
func setAside(path string, now time.Time) (string, error) {
	stem := path + ".damaged-" + now.UTC().Format("20060102T150405Z")
	aside := stem
	for i := 2; ; i++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = fmt.Sprintf("%s-%d", stem, i)
	}
	// A second name leaves no moment without a file at path, where the file system has those.
	if err := os.Link(path, aside); err == nil {
		return aside, nil
	}
	return aside, os.Rename(path, aside)
}

// syncDir makes the names in a directory durable, where the system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = errors.Join(d.Sync(), d.Close()) // some file systems refuse
	}
}
