// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The names of some kinds mean something in Go, or in the templates.
func TestModulesOfAllKindsCompileWithTheirTests(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules, which -short leaves out")
	}
	checkout, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for _, chosen := range []names{
		{Kind: "Map", Version: "v1"},
		{Kind: "Controller", Version: "v1alpha1", ShortName: "ct"},
		{Kind: "ConfigMap", Version: "v2", Plural: "config-maps"},
		{Kind: "T", Version: "v1", Plural: "t"},
	} {
		t.Run(chosen.Kind, func(t *testing.T) {
			n := chosen
			n.Module, n.Group = "example.com/x", "example.com"
			if err := n.derive(); err != nil {
				t.Fatal(err)
			}
			if err := n.readLibraryFrom(checkout); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if _, err := n.write(dir); err != nil {
				t.Fatal(err)
			}
			// What go mod tidy would do, without the network: the library's own sums.
			if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil { //nolint:gosec // in a folder of the test
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "vet", "-mod=mod", "./...")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("go vet: %v\n%s", err, output)
			}
			// The first run of the generator changes nothing.
			cmd = exec.CommandContext(t.Context(), filepath.Join(checkout, "bin", "setpoint-generate"), "--check")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=mod")
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("setpoint-generate, which \"make build\" builds: %v\n%s", err, output)
			}
		})
	}
}

// Each template is that of a file, and the licence of this project is in none of them.
func TestTemplatesAreUsed(t *testing.T) {
	n := names{Module: "example.com/website", Group: "example.com", Version: "v1", Kind: "Website", Require: "v0.1.0"}
	if err := n.derive(); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, f := range n.files() {
		used[f.template] = true
		content, err := n.render(f)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(content, []byte("Setpoint Authors")) {
			t.Errorf("%s has the licence of Setpoint; a user chooses one", f.path)
		}
		if bytes.Contains(content, []byte("<no value>")) || len(content) == 0 {
			t.Errorf("%s is\n%s", f.path, content)
		}
	}
	err := filepath.WalkDir("template", func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !used[strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(path), "template/"), ".tmpl")] {
			t.Errorf("no file is written from %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
