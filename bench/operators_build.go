// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/operators"
)

// build builds an operator from its module in a folder: with the lines that make its cache, and as it is. Both have
// the same versions of all modules, and the edits of the subject.
func (s *subject) build(ctx context.Context, out io.Writer, o operators.Operator, dir string) (binaries map[string]string, err error) {
	if err := o.Copy(ctx, dir, filepath.Join("..", "adapters")); err != nil {
		return nil, err
	}
	if err := operators.Edit(dir, s.edits); err != nil {
		return nil, err
	}
	if err := o.Change(dir); err != nil {
		return nil, err
	}
	for _, l := range o.Lines {
		if !strings.Contains("/"+l.File, "/test/") && !strings.HasSuffix(l.File, "_test.go") {
			fmt.Fprintf(out, "# %s: %s → %s\n", l.File, l.Theirs, l.Ours)
		}
	}
	binaries = map[string]string{withLine: filepath.Join(dir, "with-newcache"), withoutLine: filepath.Join(dir, "as-it-is")}
	for _, side := range []string{withLine, withoutLine} {
		args := slices.Concat([]string{"build", "-p=2", "-o", binaries[side]}, operators.Flags(), []string{s.program})
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "GOWORK=off")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build %s: %w\n%s", side, err, text)
		}
		if err := o.Restore(dir); err != nil {
			return nil, err
		}
	}
	return binaries, nil
}
