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

	"github.com/setpoint-io/setpoint/internal/operators"
)

// onLoopback has the webhook server of both sides listen on this machine alone. It has no flag for that.
var onLoopback = []operators.Line{{
	File: "core/main.go", Theirs: "webhook.Options{\n", Ours: "webhook.Options{\n\t\t\t\tHost: \"127.0.0.1\",\n",
}}

// buildOperator builds the core manager of cluster-api from its module in a folder: with the lines that
// make its cache, and as it is. Both have the same versions of all modules.
func buildOperator(ctx context.Context, out io.Writer, o operators.Operator, dir string) (binaries map[string]string, err error) {
	if err := o.Copy(ctx, dir, filepath.Join("..", "adapters")); err != nil {
		return nil, err
	}
	if err := operators.Edit(dir, onLoopback); err != nil {
		return nil, err
	}
	if err := o.Change(dir); err != nil {
		return nil, err
	}
	for _, l := range o.Lines {
		if filepath.Dir(l.File) == "core" {
			fmt.Fprintf(out, "# %s: %s → %s\n", l.File, l.Theirs, l.Ours)
		}
	}
	binaries = map[string]string{withLine: filepath.Join(dir, "with-newcache"), withoutLine: filepath.Join(dir, "as-it-is")}
	for _, side := range []string{withLine, withoutLine} {
		args := slices.Concat([]string{"build", "-p=2", "-o", binaries[side]}, operators.Flags(), []string{"./core"})
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
