// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/yaml"
)

// A File is a file that follows from packages.
type File struct {
	Path    string // absolute
	Content []byte
	Changed bool // the file does not exist, or has other content
}

// Write writes the files that have changed. Their folders are made if they do not exist.
func Write(files []File) error {
	for _, f := range files {
		if !f.Changed {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o777); err != nil { //nolint:gosec // the umask decides, as for every source file
			return err
		}
		if err := os.WriteFile(f.Path, f.Content, 0o666); err != nil { //nolint:gosec // the umask decides
			return err
		}
	}
	return nil
}

// output collects what one generator writes.
type output struct {
	dir      string // for files that belong to no package
	contents []*content
}

// content is one file. It implements io.WriteCloser.
type content struct {
	bytes.Buffer
	path string
}

// Close implements io.Closer.
func (*content) Close() error { return nil }

// Open implements genall.OutputRule. A file that belongs to a package is written beside its
// source.
func (o *output) Open(pkg *loader.Package, path string) (io.WriteCloser, error) {
	dir := o.dir
	if pkg != nil {
		if len(pkg.CompiledGoFiles) == 0 {
			return nil, fmt.Errorf("package %s has no files", pkg.PkgPath)
		}
		dir = filepath.Dir(pkg.CompiledGoFiles[0])
	}
	c := &content{path: filepath.Join(dir, path)}
	o.contents = append(o.contents, c)
	return c, nil
}

// files compares what was collected with the files that exist.
func (o *output) files() ([]File, error) {
	var files []File
	for _, c := range o.contents {
		before, err := os.ReadFile(c.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		files = append(files, File{Path: c.path, Content: c.Bytes(), Changed: err != nil || !bytes.Equal(before, c.Bytes())})
	}
	return files, nil
}

// roleFile is the name of the file with rights.
// Source: sigs.k8s.io/controller-tools/pkg/rbac, Generator.
const roleFile = "role.yaml"

// roleName returns the name of the first role in a file, or otherwise if there is no such file.
func roleName(path, otherwise string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return otherwise, nil
	}
	if err != nil {
		return "", err
	}
	first, _, _ := bytes.Cut(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---"))
	var role struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(first, &role); err != nil {
		return "", fmt.Errorf("reading the name of the role in %s: %w", path, err)
	}
	if role.Metadata.Name == "" {
		return otherwise, nil
	}
	return role.Metadata.Name, nil
}
