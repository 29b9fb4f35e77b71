// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// file is one file, or one folder, of a tree.
type file struct {
	mode fs.FileMode // permissions, and fs.ModeDir for a folder
	data []byte
}

// tree is files by their path, which is slash-separated and relative. Folders that a path
// names are implied; those with permissions of their own, or without files, are entries.
type tree map[string]file

// add adds a file that every user may read.
func (t tree) add(name string, data []byte) { t[name] = file{mode: 0o644, data: data} }

// addProgram adds a file of the machine that every user may run.
func (t tree) addProgram(name, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	t[name] = file{mode: 0o755, data: data}
	return nil
}

// addFile adds a file of the machine. Its permissions on the machine do not matter.
func (t tree) addFile(name, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	t.add(name, data)
	return nil
}

// addFolder adds the files in a folder of the machine, and in the folders below it.
func (t tree) addFolder(name, from string) error {
	return filepath.WalkDir(from, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		return t.addFile(path.Join(name, filepath.ToSlash(relative)), at)
	})
}

// write writes the tree as a tar archive: folders before what is in them, sorted, owned by
// root, all with one time.
func (t tree) write(to io.Writer, at time.Time) error {
	all := maps.Clone(t)
	for name := range t {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = file{mode: fs.ModeDir | 0o755}
			}
		}
	}
	w := tar.NewWriter(to)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: at, Format: tar.FormatPAX}
		if f.mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000 // c_ISVTX of the tar format
		}
		if f.mode.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, name+"/"
		}
		if err := w.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s to an archive: %w", name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return fmt.Errorf("writing %s to an archive: %w", name, err)
		}
	}
	return w.Close()
}
