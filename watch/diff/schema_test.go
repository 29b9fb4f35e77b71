// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/setpoint-io/setpoint/watch/event"
)

// TestBuiltinIsWhatServersMerge holds the schemas made of struct tags and the tables beside
// them against the schema that client-go has for server-side apply, list by list.
func TestBuiltinIsWhatServersMerge(t *testing.T) {
	facts := serverFacts(t)
	if len(facts) < 50 {
		t.Fatalf("only %d types with lists in client-go's schema; was its file changed?", len(facts))
	}
	read := reading{}
	for _, typ := range scheme.Scheme.AllKnownTypes() {
		read.value(typ)
	}
	checked := 0
	for typ, n := range read {
		name := schemaName(typ)
		for field, want := range facts[name] {
			checked++
			got := n.field(field)
			switch {
			case got == nil:
				t.Errorf("%s.%s: nothing known, want keys %v or a set", name, field, want)
			case want == nil && !got.set:
				t.Errorf("%s.%s: is a set", name, field)
			case !slices.Equal(got.keys, want):
				t.Errorf("%s.%s: keys %v, want %v", name, field, got.keys, want)
			}
		}
	}
	if checked < 140 {
		t.Errorf("only %d lists were found in Go types", checked)
	}
	t.Logf("%d lists checked", checked)
}

// serverFacts returns the keys of all associative lists, nil for sets, by type and field.
func serverFacts(t *testing.T) map[string]map[string][]string {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("without the go command the source of client-go is not found")
	}
	out, err := exec.CommandContext(t.Context(), goTool, "list", "-m", "-f", "{{.Dir}}", "k8s.io/client-go").Output()
	if err != nil {
		t.Skipf("finding the source of client-go: %v", err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "applyconfigurations", "internal", "internal.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(source), "YAMLObject(`")
	text, _, _ = strings.Cut(text, "`)")
	var tree struct {
		Types []struct {
			Name string `yaml:"name"`
			Map  struct {
				Fields []struct {
					Name string `yaml:"name"`
					Type struct {
						List struct {
							Relationship string   `yaml:"elementRelationship"`
							Keys         []string `yaml:"keys"`
						} `yaml:"list"`
					} `yaml:"type"`
				} `yaml:"fields"`
			} `yaml:"map"`
		} `yaml:"types"`
	}
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	facts := map[string]map[string][]string{}
	for _, typ := range tree.Types {
		for _, f := range typ.Map.Fields {
			if f.Type.List.Relationship != "associative" {
				continue
			}
			if facts[typ.Name] == nil {
				facts[typ.Name] = map[string][]string{}
			}
			facts[typ.Name][f.Name] = f.Type.List.Keys
		}
	}
	return facts
}

// schemaName returns io.k8s.api.core.v1.Pod for k8s.io/api/core/v1.Pod.
func schemaName(t reflect.Type) string {
	host, path, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

func TestBuiltin(t *testing.T) {
	deployment, ok := Builtin(event.Kind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if !ok {
		t.Fatal("no schema for Deployments")
	}
	pod := []string{"spec", "template", "spec"}
	for _, c := range []struct {
		path []string
		keys []string
		set  bool
	}{
		{append(slices.Clone(pod), "containers"), []string{"name"}, false},
		{append(slices.Clone(pod), "containers", "*", "ports"), []string{"containerPort", "protocol"}, false},
		{append(slices.Clone(pod), "ephemeralContainers", "*", "ports"), []string{"containerPort", "protocol"}, false},
		{append(slices.Clone(pod), "containers", "*", "volumeMounts"), []string{"mountPath"}, false},
		{append(slices.Clone(pod), "hostAliases"), []string{"ip"}, false},
		{append(slices.Clone(pod), "topologySpreadConstraints"), []string{"topologyKey", "whenUnsatisfiable"}, false},
		{append(slices.Clone(pod), "tolerations"), nil, false},
		{[]string{"status", "conditions"}, []string{"type"}, false},
		{[]string{"metadata", "ownerReferences"}, []string{"uid"}, false},
		{[]string{"metadata", "finalizers"}, nil, true},
		{[]string{"no", "*", "such"}, nil, false},
	} {
		if keys, set := keysAt(deployment, c.path...); !slices.Equal(keys, c.keys) || set != c.set {
			t.Errorf("%v: keys %v, set %v", c.path, keys, set)
		}
	}
	if _, ok := Builtin(event.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}); ok {
		t.Error("a schema for Widgets")
	}
	if !(Schema{}).IsZero() || Generic().IsZero() {
		t.Error("only the zero Schema is zero")
	}
}

func TestFromCRD(t *testing.T) {
	crd := parse(t, `{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"properties":{
		"doors":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["floor","side"],"items":{"properties":{
			"colours":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}},
		"rooms":{"additionalProperties":{"properties":{"beds":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"]}}}},
		"template":{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		"odd":{"properties":17,"items":"x","x-kubernetes-list-type":3,"x-kubernetes-list-map-keys":[4]}
		}}}}}}]}}`)
	s, ok := FromCRD(crd, "v1")
	if !ok {
		t.Fatal("version v1 was not found")
	}
	for _, c := range []struct {
		path string
		keys []string
		set  bool
	}{
		{"spec doors", []string{"floor", "side"}, false},
		{"spec doors * colours", nil, true},
		{"spec rooms blue beds", []string{"id"}, false},
		{"spec template metadata finalizers", nil, true},
		{"metadata ownerReferences", []string{"uid"}, false},
		{"spec odd", nil, false},
	} {
		if keys, set := keysAt(s, strings.Fields(c.path)...); !slices.Equal(keys, c.keys) || set != c.set {
			t.Errorf("%v: keys %v, set %v", c.path, keys, set)
		}
	}
	if _, ok := FromCRD(crd, "v2"); ok {
		t.Error("version v2 was found")
	}
	if _, ok := FromCRD(nil, ""); ok {
		t.Error("a version without a name was found")
	}
	found := Compare(
		parse(t, `{"spec":{"doors":[{"floor":1,"side":"left","colours":["red","green"]},{"floor":1,"side":"right"}]}}`),
		parse(t, `{"spec":{"doors":[{"floor":2,"side":"left"},{"floor":1,"side":"left","colours":["red","blue","green"]},{"floor":1,"side":"right"}]}}`), s)
	want := "add spec.doors[floor=1,side=left].colours[1] blue\nadd spec.doors[floor=2,side=left] map[floor:2 side:left]\n"
	if got := lines(found); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// keysAt returns the keys of the list at a path, and whether it is a set. A name leads to a
// field or to an entry of a map, and * to the elements of a list.
func keysAt(s Schema, path ...string) (keys []string, set bool) {
	n := s.root
	for _, name := range path {
		if name == "*" {
			n = n.item()
		} else {
			n = n.field(name)
		}
	}
	return n.listKeys(), n.isSet()
}

func FuzzFromCRD(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"items":{"x-kubernetes-list-type":"map"}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var tree map[string]any
		if yaml.Unmarshal(data, &tree) != nil {
			return
		}
		version := map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": tree}}
		s, known := FromCRD(map[string]any{"spec": map[string]any{"versions": []any{version}}}, "v1")
		if _, set := keysAt(s, "metadata", "finalizers"); !known || !set {
			t.Fatal("the metadata is not known")
		}
	})
}
