// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// base is the commit that changes are counted from: the last one that HEAD has
// in common with origin/main, or the one before HEAD where that is HEAD itself
// or is not known.
func base(ctx context.Context, root string) (string, error) {
	head, err := git(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	if common, err := git(ctx, root, "merge-base", "HEAD", "origin/main"); err == nil && common != head {
		return common, nil
	}
	before, err := git(ctx, root, "rev-parse", "HEAD~1")
	if err != nil {
		return "", fmt.Errorf("there is no commit before HEAD to count changes from, give one with -base: %w", err)
	}
	return before, nil
}

// changedFiles are those that differ between a commit and the working tree,
// and those that git does not know yet, relative to root.
func changedFiles(ctx context.Context, root, base string) ([]string, error) {
	differ, err := git(ctx, root, "diff", "--name-only", "--no-renames", base, "--")
	if err != nil {
		return nil, err
	}
	fresh, err := git(ctx, root, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files := slices.DeleteFunc(append(strings.Split(differ, "\n"), strings.Split(fresh, "\n")...), func(file string) bool { return file == "" })
	slices.Sort(files)
	return slices.Compact(files), nil
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// testFolders are the folders with tests that changed files belong to: their own,
// or for what lies in testdata and folders without Go files, the nearest one above
// with Go files. They are relative to root.
func testFolders(root string, files []string) []string {
	var folders []string
	for _, file := range files {
		folder := filepath.Dir(file)
		inTestdata := strings.Index("/"+filepath.ToSlash(folder)+"/", "/testdata/")
		if inTestdata >= 0 {
			folder = filepath.Clean("./" + folder[:max(0, inTestdata-1)])
		} else if !strings.HasSuffix(file, ".go") {
			continue // documents, scripts: no package is made of them
		}
		if tests, _ := filepath.Glob(filepath.Join(root, folder, "*_test.go")); len(tests) > 0 {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// checkout is the root of the git checkout that the working folder is in.
func checkout(ctx context.Context) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("looking for the checkout: %w", err)
	}
	return git(ctx, here, "rev-parse", "--show-toplevel")
}
