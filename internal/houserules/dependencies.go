// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dependencies holds that docs/dependencies.md in root has a row, with a reason,
// for every module that one of the modules in the given folders requires itself,
// in the version that it requires. Modules of this repository need no reason.
func Dependencies(ctx context.Context, root string, folders ...string) ([]string, error) {
	document, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		return nil, fmt.Errorf("reading why there are dependencies: %w", err)
	}
	module, err := run(ctx, root, "list", "-m")
	if err != nil {
		return nil, err
	}
	ours := strings.TrimSpace(string(module))
	var found []string
	for _, folder := range folders {
		text, err := run(ctx, filepath.Join(root, folder), "mod", "edit", "-json")
		if err != nil {
			return nil, err
		}
		var file struct {
			Require []struct {
				Path, Version string
				Indirect      bool
			}
		}
		if err := json.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("reading go.mod in %s: %w", folder, err)
		}
		for _, require := range file.Require {
			row := fmt.Sprintf("| `%s` | %s | ", require.Path, require.Version)
			if !require.Indirect && !under(require.Path, ours) && !strings.Contains(string(document), "\n"+row) {
				found = append(found, fmt.Sprintf("docs/dependencies.md: has no row that starts with %q, which %s needs; say why",
					row, filepath.ToSlash(filepath.Join(folder, "go.mod"))))
			}
		}
	}
	slices.Sort(found)
	return found, nil
}
