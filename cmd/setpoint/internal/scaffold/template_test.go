// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// written returns the folder of a new module, which is built on this checkout.
func written(t *testing.T, chosen names) (*names, string) {
	t.Helper()
	n := &chosen
	n.Module, n.Group = "example.com/x", "example.com"
	if err := n.derive(); err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("../../../..")
	if err != nil {
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
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600); err != nil { //nolint:gosec // in a folder of the test
		t.Fatal(err)
	}
	return n, dir
}

// runIn runs a command in the folder of a module, and returns what it prints. What the command
// compiles of the library is what "make build" has compiled.
func runIn(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=mod -buildvcs=false")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(command, " "), err, output)
	}
	return string(output)
}

// The names of some kinds mean something in Go, or in the templates.
func TestModulesOfAllKindsCompileWithTheirTests(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles modules, which -short leaves out")
	}
	generator, err := filepath.Abs("../../../../bin/setpoint-generate") // "make build" builds it
	if err != nil {
		t.Fatal(err)
	}
	for _, chosen := range []names{
		{Kind: "Map", Version: "v1"},
		{Kind: "Controller", Version: "v1alpha1", ShortName: "ct"},
		{Kind: "ConfigMap", Version: "v2", Plural: "config-maps"},
		{Kind: "T", Version: "v1", Plural: "t"},
		{Kind: "Namespace", Version: "v1", ShortName: "na", ClusterScoped: true},
	} {
		t.Run(chosen.Kind, func(t *testing.T) {
			_, dir := written(t, chosen)
			if unformatted := runIn(t, dir, "gofmt", "-l", "."); unformatted != "" {
				t.Errorf("gofmt would change %s", unformatted)
			}
			runIn(t, dir, "go", "vet", "./...")
			// The first run of the generator changes nothing.
			runIn(t, dir, generator, "--check")
		})
	}
}

// A module of a kind in namespaces is tested by testdata/cluster/new.txtar of the command.
func TestTheTestsOfAClusterScopedKindPass(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a module, which -short leaves out")
	}
	_, dir := written(t, names{Kind: "Order", Version: "v1", ClusterScoped: true})
	if output := runIn(t, dir, "go", "test", "-short", "-v", "./controllers"); strings.Count(output, "--- PASS") != 3 {
		t.Errorf("want 3 tests that pass, and have\n%s", output)
	}
}

func TestTheScopeIsInEachFileThatNeedsIt(t *testing.T) {
	for _, c := range []struct {
		clusterScoped bool
		want, not     map[string]string // parts of files, by path
	}{
		{
			false,
			map[string]string{"config/crd/example.com_orders.yaml": "scope: Namespaced", "config/sample.yaml": "namespace: default"},
			map[string]string{"api/v1/order_types.go": "scope=Cluster"},
		},
		{
			true,
			map[string]string{
				"config/crd/example.com_orders.yaml": "scope: Cluster", "api/v1/order_types.go": ",scope=Cluster",
				"controllers/order_test.go": `key          = object.Key{Name: "greeting"}`, "README.md": "cluster-scoped",
			},
			map[string]string{"config/sample.yaml": "namespace", "controllers/order.go": "order.Namespace"},
		},
	} {
		n := names{Module: "example.com/x", Group: "example.com", Version: "v1", Kind: "Order", Require: "v0.1.0", ClusterScoped: c.clusterScoped}
		if err := n.derive(); err != nil {
			t.Fatal(err)
		}
		for _, f := range n.files() {
			content, err := n.render(f)
			if err != nil {
				t.Fatal(err)
			}
			if part := c.want[f.path]; !strings.Contains(string(content), part) {
				t.Errorf("cluster-scoped %v: %s has no %q", c.clusterScoped, f.path, part)
			}
			if part := c.not[f.path]; part != "" && strings.Contains(string(content), part) {
				t.Errorf("cluster-scoped %v: %s has %q", c.clusterScoped, f.path, part)
			}
		}
	}
}

// An article before the name of a kind would be wrong for some: "a Order", "an User".
func TestNoArticleStandsBeforeTheKind(t *testing.T) {
	article := regexp.MustCompile(`(?i)\b(an?) (Order|Orders)\b|TestAOrder`)
	for _, clusterScoped := range []bool{false, true} {
		n := names{Module: "example.com/x", Group: "example.com", Version: "v1", Kind: "Order", Require: "v0.1.0", ClusterScoped: clusterScoped}
		if err := n.derive(); err != nil {
			t.Fatal(err)
		}
		for _, f := range n.files() {
			content, err := n.render(f)
			if err != nil {
				t.Fatal(err)
			}
			if found := article.Find(content); found != nil {
				t.Errorf("%s has %q", f.path, found)
			}
		}
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
