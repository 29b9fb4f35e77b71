// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// setpoint is the path of the module that has the module of the adapters in a folder.
const setpoint = "github.com/setpoint-io/setpoint"

// Flags are flags of the go command for the modules of operators. The first build chooses the versions of
// the modules that all later builds have. Tests of cluster-api find their files by the path that the
// compiler has seen, which -trimpath in GOFLAGS would cut. The binaries are large, and need no tables
// for debuggers.
func Flags() []string { return []string{"-mod=mod", "-trimpath=false", "-ldflags=-w"} }

// Copy copies the modules of an operator to a folder, and has them find the module of the adapters in
// another.
func (o Operator) Copy(ctx context.Context, dir, adapters string) error {
	if err := CopyModule(ctx, o.Module, dir); err != nil {
		return err
	}
	for folder, module := range o.Nested {
		if err := CopyModule(ctx, module, filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	adapters, err := filepath.Abs(adapters)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "edit",
		"-require="+setpoint+"@v0.0.0", "-replace="+setpoint+"="+filepath.Dir(adapters),
		"-require="+setpoint+"/adapters@v0.0.0", "-replace="+setpoint+"/adapters="+adapters)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod edit: %w\n%s", err, out)
	}
	return nil
}

// CopyModule downloads a module, path@version, and copies it. Files of modules are not executable and
// cannot be written to; scripts that tests start must be, and tests write beside themselves.
func CopyModule(ctx context.Context, name, dir string) error {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", name).Output()
	if err != nil {
		return fmt.Errorf("downloading %s: %w\n%s", name, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return fmt.Errorf("downloading %s: %w", name, err)
	}
	return filepath.WalkDir(module.Dir, func(from string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(from, module.Dir))
		if e.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		text, err := os.ReadFile(from) //nolint:gosec // the cache of modules is the user's own
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if bytes.HasPrefix(text, []byte("#!")) {
			mode = 0o700
		}
		return os.WriteFile(to, text, mode) //nolint:gosec // below a folder of the caller's
	})
}
