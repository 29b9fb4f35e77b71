// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// files are where NewCache takes the place of cache.New: tests, and the default of managers.
var files = []string{
	"pkg/cache/cache_test.go", "pkg/client/consistency_envtest_test.go", "pkg/internal/controller/controller_test.go",
	"pkg/builder/controller_test.go", "pkg/source/source_suite_test.go", "pkg/cluster/cluster.go",
}

const (
	ours      = "github.com/setpoint-io/setpoint"
	importOf  = "\t\"sigs.k8s.io/controller-runtime/pkg/cache\"\n"
	importToo = "\tsetpointcache \"" + ours + "/adapters/controllerruntime\"\n"
)

var theirs = regexp.MustCompile(`\bcache\.New\b`)

// copyModule copies controller-runtime, and puts NewCache in the place of cache.New.
func copyModule(ctx context.Context, to string) error {
	found, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime").Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	if err := os.CopyFS(to, os.DirFS(strings.TrimSpace(string(found)))); err != nil {
		return err
	}
	for _, name := range files {
		path := filepath.Join(to, filepath.FromSlash(name))
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed := theirs.ReplaceAllString(string(text), "setpointcache.NewCache")
		changed = strings.Replace(changed, importOf, importOf+importToo, 1)
		if changed == string(text) {
			return fmt.Errorf("%s does not use cache.New any more", name)
		}
		if err := writable(path, changed); err != nil {
			return err
		}
	}
	adapters, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		path := filepath.Join(to, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := writable(path, string(text)); err != nil {
			return err
		}
	}
	return command(ctx, to, nil, "go", "mod", "edit", "-require="+ours+"@v0.0.0", "-require="+ours+"/adapters@v0.0.0",
		"-replace="+ours+"="+filepath.Dir(adapters), "-replace="+ours+"/adapters="+adapters)
}

// writable replaces a file, whose copy has the mode of the read-only one.
func writable(path, text string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600) //nolint:gosec // the folder is a temporary one of ours
}
