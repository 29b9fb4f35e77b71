// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNotOwn means that another user owns a file or directory, or can change it, or that it is
// not of the type that this user would have made. It was not read or written.
var ErrNotOwn = errors.New("it may have been put there by another user")

// writableByOthers are the permissions of group and others to write.
const writableByOthers = 0o022

// user is a user id. Tests take the place of another user with it.
type user int

func me() user { return user(os.Geteuid()) }

// trusts reports whether the owner of a file is the user or root.
func (u user) trusts(info fs.FileInfo) error {
	owner, known := ownerOf(info)
	if known && owner != u && owner != 0 {
		return fmt.Errorf("%w: user %d owns it", ErrNotOwn, owner)
	}
	return nil
}

// Link checks that path, if it is a symbolic link, is one that the user or root has made. What
// is not there is no link.
func Link(path string) error { return me().link(path) }

func (u user) link(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink == 0:
		return nil
	}
	if err := u.trusts(info); err != nil {
		return fmt.Errorf("%s is a symbolic link: %w", path, err)
	}
	return nil
}

// parents checks the directories above a path, which must be absolute and free of links:
// a user who may rename in one of them can put another directory in the place of the one meant.
func (u user) parents(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if err := u.trusts(info); err != nil {
			return fmt.Errorf("the directory %s above it: %w", dir, err)
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("the directory %s above it (mode %04o): %w: every user may rename what is in it", dir, info.Mode().Perm(), ErrNotOwn)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
