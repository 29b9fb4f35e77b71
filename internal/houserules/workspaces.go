// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Workspaces holds that the go command works in the folder of each module
// without GOWORK=off: the go.work that it finds there, in the folder or the
// nearest one above, must use the module. Files are slash-separated and
// relative to root.
func Workspaces(ctx context.Context, root string, files []string) ([]string, error) {
	var found []string
	for _, file := range files {
		if path.Base(file) != "go.mod" {
			continue
		}
		folder := path.Dir(file)
		for above := folder; ; above = path.Dir(above) {
			used, err := uses(ctx, filepath.Join(root, above))
			if err != nil {
				return nil, err
			}
			module, err := filepath.Rel(above, folder)
			if err != nil {
				return nil, fmt.Errorf("looking for the workspace of %s: %w", folder, err)
			}
			if used != nil && !slices.Contains(used, module) {
				found = append(found, fmt.Sprintf("%s: %s does not use the module, so go commands fail in its folder; add it there, or a go.work beside it",
					file, path.Join(above, "go.work")))
			}
			if used != nil || above == "." {
				break
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// uses are the folders of modules that the go.work in a folder names, or nil if
// there is no such file.
func uses(ctx context.Context, folder string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(folder, "go.work")); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	text, err := run(ctx, folder, "work", "edit", "-json", "go.work")
	if err != nil {
		return nil, err
	}
	var work struct{ Use []struct{ DiskPath string } }
	if err := json.Unmarshal(text, &work); err != nil {
		return nil, fmt.Errorf("reading go.work in %s: %w", folder, err)
	}
	used := []string{}
	for _, use := range work.Use {
		used = append(used, filepath.Clean(use.DiskPath))
	}
	return used, nil
}
