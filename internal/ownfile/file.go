// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Open opens the regular file at path, which must belong to the user or to root. It does not
// follow a symbolic link and does not wait for a pipe. The flags are those of os.OpenFile
// without O_CREATE and O_TRUNC, which would act before the file has been checked.
func Open(path string, flag int) (*os.File, error) { return me().open(path, flag) }

func (u user) open(path string, flag int) (*os.File, error) {
	// The open refuses a link as well. Looking first makes for a better error.
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info)
	}
	f, err := os.OpenFile(path, flag&^(os.O_CREATE|os.O_TRUNC)|safely, 0)
	if err != nil {
		return nil, err
	}
	if err := u.check(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// check checks the open file.
func (u user) check(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(path, info)
	}
	if err := u.trusts(info); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func notRegular(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s is not a regular file (%s): %w", path, info.Mode().Type(), ErrNotOwn)
}

// Read reads a file of at most so many bytes, which is checked as [Open] does.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return readAll(f, path, most)
}

func readAll(f *os.File, path string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return data, nil
}

// Tighten takes the permissions of group and others off an open file. It reports whether they
// are off: some file systems keep no permissions.
func Tighten(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if info.Mode().Perm()&0o077 == 0 {
		return true, nil
	}
	if err := f.Chmod(info.Mode().Perm() & 0o700); err != nil {
		return false, err
	}
	info, err = f.Stat()
	return err == nil && info.Mode().Perm()&0o077 == 0, err
}
