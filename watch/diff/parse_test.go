// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"reflect"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	name := func(name string) Element { return Element{Kind: Field, Name: name} }
	for text, want := range map[string]Path{
		"spec.replicas":                    {name("spec"), name("replicas")},
		"metadata.labels[example.com/a]":   {name("metadata"), name("labels"), name("example.com/a")},
		`data["2"]`:                        {name("data"), name("2")},
		`data["order"]`:                    {name("data"), name("order")},
		"args[2]":                          {name("args"), {Kind: Item, Old: 2, New: 2}},
		"a[99999999999999999999]":          {name("a"), name("99999999999999999999")},
		"a[order]":                         {name("a"), {Kind: Order, Old: -1, New: -1}},
		"ports[port=80,protocol=TCP].name": {name("ports"), {Kind: Keyed, Keys: []Key{{"port", "80"}, {"protocol", "TCP"}}}, name("name")},
		`a[name="x]"].b`:                   {name("a"), {Kind: Keyed, Keys: []Key{{"name", "x]"}}}, name("b")},
		"a.*.b[*]":                         {name("a"), {Kind: Field, Any: true}, name("b"), {Kind: Item, Any: true}},
		`a["*"]`:                           {name("a"), name("*")},
	} {
		if got, err := ParsePath(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":         "the path is empty",
		"a[b":      "at character 2: the bracket is not closed",
		`a["b`:     "at character 2: a quote is not closed",
		"a[b=c":    "the bracket is not closed",
		`a[b="c"d`: "the bracket is not closed; a value with other signs is quoted",
		"a[b=c,d]": `the key "d" has no value`,
		"a[b=c,d":  "the bracket is not closed",
		"a[]":      "the bracket is empty",
		`a["b"c]`:  "want a closing bracket",
		"a b":      `at character 2: want a dot or a bracket before " b"`,
		"a..b":     "at character 3: want the name of a field",
	} {
		if got, err := ParsePath(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v, want %s", text, got, err, want)
		}
	}
}

// Each path that a comparison finds is read back from its text, except that the values of keys
// are texts.
func FuzzParsePath(f *testing.F) {
	for _, name := range []string{"a", "a.b", "order", "*", "2", "", "a=b", "a,b", `"`, "true"} {
		f.Add(name, name)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		p := Path{{Kind: Field, Name: "spec"}, {Kind: Field, Name: name}, {Kind: Keyed, Keys: []Key{{name, value}, {"b", "c"}}}, {Kind: Field, Name: value}}
		text := p.String()
		got, err := ParsePath(text)
		if err != nil || got.Compare(p) != 0 || got.String() != text {
			t.Fatalf("%s became %s, %v", text, got, err)
		}
	})
}
