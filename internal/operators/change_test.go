// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const program = "package a\n\nimport (\n\t\"x\"\n)\n\nvar a, _ = ctrl.NewManager(config, ctrl.Options{Scheme: s})\n"

// inFolder writes files to a temporary folder.
func inFolder(t *testing.T, files map[string]string) (dir string) {
	dir = t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLinesAreChangedAndRestored(t *testing.T) {
	t.Parallel()
	o := Operator{Name: "some", Lines: []Line{{"b/a.go", options, options + plain}, {"b/a.go", "ctrl.NewManager(", "mine.NewManager("}}}
	dir := inFolder(t, map[string]string{"b/a.go": program})
	if err := o.Change(dir); err != nil {
		t.Fatal(err)
	}
	changed, err := os.ReadFile(filepath.Join(dir, "b/a.go"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "package a\n\nimport (\n\tsetpoint \"github.com/setpoint-io/setpoint/adapters/controllerruntime\"\n\t\"x\"\n)\n\n" +
		"var a, _ = mine.NewManager(config, ctrl.Options{NewCache: setpoint.NewCache,Scheme: s})\n"
	if string(changed) != want {
		t.Errorf("changed is\n%s", changed)
	}
	for range 2 { // once more changes nothing
		if err := o.Restore(dir); err != nil {
			t.Fatal(err)
		}
		if restored, err := os.ReadFile(filepath.Join(dir, "b/a.go")); err != nil || string(restored) != program {
			t.Errorf("restored is\n%s%v", restored, err)
		}
	}
}

func TestAComparisonWithControllerRuntimesCacheOnBothSidesIsRefused(t *testing.T) {
	t.Parallel()
	lines := []Line{{"a.go", options, options + plain}}
	for name, one := range map[string]struct {
		files map[string]string
		lines []Line
		want  string
	}{
		"a line that is not there":   {map[string]string{"a.go": "package a\n"}, lines, "0 times"},
		"a line that is there twice": {map[string]string{"a.go": program + program}, lines, "2 times"},
		"another manager":            {map[string]string{"a.go": program, "b.go": program}, lines, `b.go has "ctrl.NewManager("`},
		"another cache":              {map[string]string{"a.go": program, "b_test.go": "x = ctrlcache.New("}, lines, `b_test.go has "ctrlcache.New("`},
		"informers of the program":   {map[string]string{"a.go": program, "b.go": "NewInformer: mine,"}, lines, "IgnoreNewInformer"},
		"informers that are ignored": {map[string]string{"a.go": program, "b.go": "NewInformer: mine,"}, []Line{{"a.go", options, options + replacing}}, ""},
	} {
		err := Operator{Name: "some", Lines: one.lines}.Change(inFolder(t, one.files))
		if (err == nil) != (one.want == "") || err != nil && !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: %v, want %q", name, err, one.want)
		}
	}
}

func TestOperatorsAreFoundByName(t *testing.T) {
	t.Parallel()
	for _, o := range List {
		if found, err := Named(o.Name); err != nil || found.Module != o.Module {
			t.Errorf("%s: %v, %v", o.Name, found.Module, err)
		}
	}
	if _, err := Named("nonsense"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("nonsense: %v", err)
	}
}
