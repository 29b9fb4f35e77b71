// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Dir is an open directory of the user. Its methods act on the directory that was opened,
// whatever its path leads to later, and never leave it. Close it after use.
type Dir struct {
	root *os.Root
	path string // absolute, without links
	u    user
}

// OpenDir opens the directory at path, which the user must own. A symbolic link at its end must
// be the user's or root's, and so must all directories above it; if every user may write to one
// of those, it must be sticky, as /tmp is.
func OpenDir(path string) (*Dir, error) { return me().openDir(path) }

func (u user) openDir(path string) (*Dir, error) {
	if err := u.link(path); err != nil {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		resolved, err = filepath.Abs(resolved)
	}
	if err != nil {
		return nil, err
	}
	if err := u.parents(resolved); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return u.openRoot(resolved)
}

// OpenPrivate opens the directory at path if it is as os.MkdirTemp makes one: no link, owned by
// the user, with no permission of others. The directories above it are not checked.
func OpenPrivate(path string) (*Dir, error) { return me().openPrivate(path) }

func (u user) openPrivate(path string) (*Dir, error) {
	d, err := u.openRoot(path)
	if err != nil {
		return nil, err
	}
	mode, err := d.Mode()
	if err == nil && mode&0o077 != 0 {
		err = fmt.Errorf("%s has mode %04o: %w", path, mode, ErrNotOwn)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (u user) openRoot(path string) (*Dir, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, fmt.Errorf("%s is not a directory (%s): %w", path, named.Mode().Type(), ErrNotOwn)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{root: root, path: path, u: u}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = fmt.Errorf("%s was replaced meanwhile: %w", path, ErrNotOwn)
	}
	if err == nil {
		err = u.owns(path, opened)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// owns is as trusts for a directory of the user: one of root's would not do, since the user
// could not change its permissions.
func (u user) owns(path string, info fs.FileInfo) error {
	if owner, known := ownerOf(info); known && owner != u {
		return fmt.Errorf("%s: %w: user %d owns it, and this is user %d", path, ErrNotOwn, owner, u)
	}
	return nil
}

// Path is the directory's path, absolute if OpenDir opened it.
func (d *Dir) Path() string { return d.path }

// Close closes the directory. It changes nothing in it.
func (d *Dir) Close() error { return d.root.Close() }

// Mode returns the directory's permissions.
func (d *Dir) Mode() (fs.FileMode, error) {
	info, err := d.root.Stat(".")
	if err != nil {
		return 0, err
	}
	return info.Mode().Perm(), nil
}

// WritableByOthers reports whether others than the owner may put something into the directory.
func (d *Dir) WritableByOthers() (bool, error) {
	mode, err := d.Mode()
	return mode&writableByOthers != 0, err
}

// Tighten sets the directory's permissions to 0700. A file system that keeps none is an error.
func (d *Dir) Tighten() error {
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o700), f.Close()); err != nil {
		return err
	}
	mode, err := d.Mode()
	if err == nil && mode&0o077 != 0 {
		err = fmt.Errorf("%s: its permissions stay %04o: %w", d.path, mode, ErrNotOwn)
	}
	return err
}

// Names returns what is in the directory.
func (d *Dir) Names() ([]string, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	found, err := f.Readdirnames(-1)
	return found, errors.Join(err, f.Close())
}

// Read reads a regular file in the directory, of at most so many bytes, that the user or root
// owns and others cannot write to.
func (d *Dir) Read(name string, most int64) ([]byte, error) {
	f, err := d.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return readAll(f, filepath.Join(d.path, name), most)
}

// Open opens a regular file in the directory, or makes it with mode 0600 if flag has O_CREATE.
// It must have one name, belong to the user or root, and others must not be able to write to
// it. O_TRUNC acts once that is known.
func (d *Dir) Open(name string, flag int) (*os.File, error) {
	path := filepath.Join(d.path, name)
	const create = os.O_CREATE | os.O_EXCL
	info, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0 {
		var f *os.File
		if f, err = d.root.OpenFile(name, flag|create, 0o600); err == nil {
			return f, nil
		}
		if errors.Is(err, fs.ErrExist) { // another process was faster
			info, err = d.root.Lstat(name)
		}
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(path, info)
	}
	f, err := d.root.OpenFile(name, flag&^(create|os.O_TRUNC)|safely, 0)
	if err != nil {
		return nil, err
	}
	err = d.check(f, info, path)
	if err == nil && flag&os.O_TRUNC != 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// check looks at the file that was opened, which must be the one that the name stood for.
func (d *Dir) check(f *os.File, named fs.FileInfo, path string) error {
	if err := d.u.check(f, path); err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !os.SameFile(named, info):
		return fmt.Errorf("%s was replaced meanwhile: %w", path, ErrNotOwn)
	case names(info) > 1:
		return fmt.Errorf("%s is also known by another name: %w", path, ErrNotOwn)
	case info.Mode().Perm()&writableByOthers != 0:
		return fmt.Errorf("%s has mode %04o, so that others may write to it: %w", path, info.Mode().Perm(), ErrNotOwn)
	}
	return nil
}

// Sub opens a directory in the directory, which it makes with mode 0700 if it is not there. It
// must not be a link, must belong to the user, and others must not be able to write to it.
func (d *Dir) Sub(name string) (*Dir, error) {
	if err := d.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	path := filepath.Join(d.path, name)
	named, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, fmt.Errorf("%s is not a directory (%s): %w", path, named.Mode().Type(), ErrNotOwn)
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(named, opened):
		err = fmt.Errorf("%s was replaced meanwhile: %w", path, ErrNotOwn)
	case opened.Mode().Perm()&writableByOthers != 0:
		err = fmt.Errorf("%s has mode %04o, so that others may write to it: %w", path, opened.Mode().Perm(), ErrNotOwn)
	default:
		err = d.u.owns(path, opened)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{root: root, path: path, u: d.u}, nil
}

// RemoveAll removes the directory with all that is in it, and the files of these names after all
// others, in this order.
func (d *Dir) RemoveAll(last ...string) error {
	found, err := d.Names()
	found = slices.DeleteFunc(found, func(name string) bool { return slices.Contains(last, name) })
	errs := []error{err}
	for _, name := range append(found, last...) {
		if errs = append(errs, d.root.RemoveAll(name)); errs[len(errs)-1] != nil {
			break
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.Remove(d.path) // of an empty directory
}
