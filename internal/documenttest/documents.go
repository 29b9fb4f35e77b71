// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Read returns the blocks of all documents of the repository at root: files with the name
// *.md, without those in folders called testdata and the changelog, which is history.
func Read(root string) ([]Block, error) {
	var blocks []Block
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "dist", "testdata", "node_modules"}, name)) {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".md") || name == "CHANGELOG.md" {
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository, which is not changed meanwhile
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found, err := Parse(filepath.ToSlash(file), string(text))
		blocks = append(blocks, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the documents: %w", err)
	}
	return blocks, nil
}

// Blocks returns the blocks that name the running test, and fails the test if there are none. A
// subtest gets those of its test.
// The test runs in the folder of its package, as go test has it.
func Blocks(t testing.TB) []Block {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	blocks, err := Named(test)
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) == 0 {
		t.Fatalf("no document has a block that names %s", test)
	}
	return blocks
}

// Named returns the blocks that name a test of the package in the current directory, or
// "TEST/SCRIPT".
func Named(test string) ([]Block, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	root, err := above(here)
	if err != nil {
		return nil, err
	}
	blocks, err := Read(root)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Rel(root, here)
	if err != nil {
		return nil, err
	}
	name := filepath.ToSlash(folder) + " " + test
	return slices.DeleteFunc(blocks, func(b Block) bool { return !slices.Contains(b.Tests, name) }), nil
}

// above returns the root of the repository that a folder is in. A module in it has a go.mod of
// its own, so the root is where the documents are.
func above(folder string) (string, error) {
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "ARCHITECTURE.md")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the folder " + folder + " is not in a checkout of the repository")
		}
	}
}
