// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/generate"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

func TestDefinitionsCopiesAndRightsFollowFromTypesAndMarkers(t *testing.T) {
	files, err := generate.Run(t.Context(), generate.Options{Patterns: []string{"./testdata/gadget"}, RoleName: "gadget-controller"})
	if err != nil {
		t.Fatal(err)
	}
	goldens := map[string]string{
		"config/crd/example.com_gadgets.yaml":      "crd.yaml",
		"config/rbac/role.yaml":                    "role.yaml",
		"testdata/gadget/zz_generated.deepcopy.go": "deepcopy.go.txt",
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path, err := filepath.Rel(here, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		golden, ok := goldens[filepath.ToSlash(path)]
		if !ok {
			t.Errorf("a file %s, which is not expected", path)
			continue
		}
		delete(goldens, filepath.ToSlash(path))
		if !f.Changed {
			t.Errorf("%s has not changed, and does not exist", path)
		}
		golden = filepath.Join("testdata", "golden", golden)
		if *update {
			if err := os.WriteFile(golden, f.Content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.Content, want) {
			t.Errorf("%s is\n%s\nwant, as in %s,\n%s", path, f.Content, golden, want)
		}
	}
	for path := range goldens {
		t.Errorf("no file %s", path)
	}
}

// module makes a module with the dependencies of this one and a package of the given source.
func module(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(text))
	}
	write(t, filepath.Join(dir, "types.go"), source)
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil { //nolint:gosec // in a folder of the test
		t.Fatal(err)
	}
}

// source is a package; a quote stands for a backquote.
var source = strings.ReplaceAll(`// +kubebuilder:object:generate=true
// +groupName=example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +kubebuilder:object:root=true
type Gadget struct {
	metav1.TypeMeta   'json:",inline"'
	metav1.ObjectMeta 'json:"metadata"'
	// +kubebuilder:validation:Minimum=1
	Size int32 'json:"size"'
}

// +kubebuilder:rbac:groups=example.com,resources=gadgets,verbs=get
// +kubebuilder:webhook:path=/gadgets,name=other

var _ Gadget
`, "'", "`")

func TestAMistakeHasItsFileAndLineAndNothingIsGenerated(t *testing.T) {
	for name, c := range map[string]struct{ good, bad, want string }{
		"a value of another type":     {"Minimum=1", "Minimum=one", "types.go:11:2: invalid minimum value"},
		"a marker that nothing reads": {"validation:Minimum", "validation:Minimun", "types.go:11:2: no generator reads the marker +kubebuilder:validation:Minimun: is it misspelt?"},
		"a marker of another family":  {"kubebuilder:object:root", "kubebuilder:objekt:root", "types.go:7:1: no generator reads the marker +kubebuilder:objekt:root"},
		"an argument that is unknown": {"verbs=get", "verb=get", `types.go:15:1: missing argument "verbs"`},
		"a type that is not declared": {"Size int32", "Size number", "types.go:12:7: unknown type number"},
		"a type that has no schema":   {"Size int32", "Size float64", "types.go:12:7: found float"},
		"a field without a name":      {`json:"size"`, `xml:"size"`, "types.go:12:2: encountered struct field \"Size\" without JSON tag"},
		"Go that cannot be read":      {"Gadget struct", "Gadget strukt", "types.go:8:20: expected ';', found '{'"},
		"a package that is not there": {"apis/meta/v1", "apis/meta/v0", "types.go:5:8: "},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(source, c.good) {
				t.Fatalf("the source has no %q", c.good)
			}
			dir := module(t, strings.ReplaceAll(source, c.good, c.bad))
			files, err := generate.Run(t.Context(), generate.Options{Dir: dir})
			if err == nil || !strings.Contains("\n"+err.Error(), "\n"+c.want) {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
			if len(files) > 0 {
				t.Errorf("%d files were generated", len(files))
			}
		})
	}
}

func TestFilesAreWrittenOnceAndKeepTheirRole(t *testing.T) {
	dir := module(t, source)
	run := func(o generate.Options) (changed []string) {
		o.Dir = dir
		files, err := generate.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Changed {
				changed = append(changed, filepath.Base(f.Path))
			}
		}
		if err := generate.Write(files); err != nil {
			t.Fatal(err)
		}
		return changed
	}
	all := "example.com_gadgets.yaml role.yaml zz_generated.deepcopy.go"
	if first := strings.Join(run(generate.Options{RoleName: "gadget-controller"}), " "); first != all {
		t.Errorf("changed at first: %s, want %s", first, all)
	}
	// Without a name, the role keeps the one that it has.
	if second := run(generate.Options{}); len(second) > 0 {
		t.Errorf("changed by a second run: %s", second)
	}
	if third := strings.Join(run(generate.Options{CRDs: "definitions", RoleName: "other"}), " "); third != "role.yaml example.com_gadgets.yaml" {
		t.Errorf("changed by a run with other options: %s", third)
	}
	role, err := os.ReadFile(filepath.Join(dir, "config", "rbac", "role.yaml"))
	if err != nil || !strings.Contains(string(role), "name: other\n") {
		t.Errorf("the role is\n%s (%v)", role, err)
	}
}
