// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

func rule(groups, versions, resources string) admissionv1.NamedRuleWithOperations {
	r := admissionv1.NamedRuleWithOperations{}
	r.APIGroups, r.APIVersions, r.Resources = strings.Split(groups, ","), strings.Split(versions, ","), strings.Split(resources, ",")
	return r
}

func TestTheKindsOfAPolicyAreThoseThatItsRulesName(t *testing.T) {
	served := []client.Served{
		{Resource: object.Resource{Version: "v1", Plural: "pods", Kind: "Pod"}},
		{Resource: object.Resource{Group: "apps", Version: "v1", Plural: "deployments", Kind: "Deployment"}},
	}
	for i := range 12 {
		served = append(served, client.Served{Resource: object.Resource{Group: "many", Version: "v1", Plural: fmt.Sprintf("r%02d", i), Kind: fmt.Sprintf("K%02d", i)}})
	}
	var many []string
	for i := range 12 {
		many = append(many, fmt.Sprintf("r%02d", i))
	}
	type rules = []admissionv1.NamedRuleWithOperations
	for name, c := range map[string]struct {
		rules   rules
		kinds   int
		missing string
		silent  string
	}{
		"none":                   {nil, 0, "", ""},
		"one":                    {rules{rule("apps", "v1", "deployments")}, 1, "", ""},
		"groups times resources": {rules{rule("apps,", "v1", "deployments,pods")}, 2, "", ""},
		"once":                   {rules{rule("apps", "v1", "deployments"), rule("apps", "v1", "deployments")}, 1, "", ""},
		"in two versions":        {rules{rule("apps", "v1,v1beta1", "deployments")}, 2, "", ""},
		"wildcards":              {rules{rule("*", "v1", "deployments"), rule("apps", "*", "deployments"), rule("apps", "v1", "*")}, 0, "", ""},
		"subresources":           {rules{rule("apps", "v1", "deployments/scale,deployments/*")}, 0, "", ""},
		"no kind of the server":  {rules{rule("example.com", "v1", "websites"), rule("", "v1", "pods")}, 1, "websites", ""},
		"ten of a rule":          {rules{rule("many", "v1", strings.Join(many, ",")), rule("", "v1", "pods")}, mostKinds + 1, "", ""},
		"a group of an aggregated server that is away": {rules{rule("metrics.example.com", "v1", "figures,sums"), rule("metrics.example.com", "v2", "figures"),
			rule("example.com", "v1", "websites")}, 0, "figures websites", "metrics.example.com/v1: figures, sums"},
		"served in a version, and not known in another": {rules{rule("apps", "v1,v1beta1", "deployments")}, 2, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &admissionv1.ValidatingAdmissionPolicy{}
			p.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: c.rules}
			kinds, u := kindsOf(p, found{kinds: served, failed: map[schema.GroupVersion]error{
				{Group: "metrics.example.com", Version: "v1"}: errors.New("away"), {Group: "apps", Version: "v1beta1"}: errors.New("away"),
			}})
			if len(kinds) != c.kinds || strings.Join(u.notServed, " ") != c.missing {
				t.Errorf("the kinds are %v, and %q is missing; want %d and %q", kinds, u.notServed, c.kinds, c.missing)
			}
			var silent []string
			for _, each := range u.silent {
				silent = append(silent, fmt.Sprintf("%s: %s", each.version, strings.Join(each.kinds, ", ")))
			}
			if strings.Join(silent, " ") != c.silent {
				t.Errorf("not known are %q, want %q", silent, c.silent)
			}
		})
	}
}

func TestNamesOfFieldsAreEscapedAsInAnAPIServer(t *testing.T) {
	for field, want := range map[string]string{
		"name": "name", "a-b": "a__dash__b", "a.b/c": "a__dot__b__slash__c", "a__b": "a__underscores__b", "namespace": "__namespace__",
		"": "", "1a": "", "a b": "", "ä": "", "$ref": "",
	} {
		if got, ok := escape(field); got != want || ok != (want != "") {
			t.Errorf("%q is escaped to %q (%t), want %q", field, got, ok, want)
		}
	}
}

// A schema may contain itself, as that of definitions of custom kinds does.
func TestASchemaThatContainsItselfEnds(t *testing.T) {
	var d Document
	if err := json.Unmarshal([]byte(`{"components": {"schemas": {
		"a": {"type": "object", "properties": {"b": {"allOf": [{"$ref": "#/components/schemas/b"}]}, "c": {"$ref": "#/components/schemas/none"}},
			"x-kubernetes-group-version-kind": [{"kind": "A", "version": "v1"}]},
		"b": {"type": "array", "items": {"$ref": "#/components/schemas/a"}}}}}`), &d); err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "A"}
	p := &admissionv1.ValidatingAdmissionPolicy{}
	p.Spec.Validations = []admissionv1.Validation{{Expression: "object.b[0] == object.c"}, {Expression: "object.b[0].b.size() == 0"}}
	warnings, err := Check(p, []Kind{{kind, d.Of(kind)}}, nil)
	if err != nil || len(warnings) != 2 || !strings.Contains(warnings[1].Warning, "undefined field 'b'") {
		t.Errorf("the warnings are %v (%v)", warnings, err)
	}
	if d.Of(schema.GroupVersionKind{Kind: "B"}) != nil {
		t.Error("the document has a kind B")
	}
}

// Aggregated API servers serve documents of their own.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"components": {"schemas": {"a": {"type": "object", "additionalProperties": true, "x-kubernetes-group-version-kind": [{"kind": "A"}]}}}}`), "object.a")
	f.Add([]byte(`{"components": {"schemas": {"a": {"allOf": [null, {"$ref": "#/components/schemas/a"}], "items": null, "x-kubernetes-group-version-kind": [{"kind": "A"}]}}}}`), "object.a == 1")
	f.Fuzz(func(t *testing.T, text []byte, expression string) {
		var d Document
		if json.Unmarshal(text, &d) != nil {
			return
		}
		p := &admissionv1.ValidatingAdmissionPolicy{}
		p.Spec.Variables = []admissionv1.Variable{{Name: "v", Expression: expression}}
		p.Spec.Validations = []admissionv1.Validation{{Expression: expression}, {Expression: "variables.v == object"}}
		kind := schema.GroupVersionKind{Kind: "A"}
		if _, err := Check(p, []Kind{{kind, d.Of(kind)}}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	p := &admissionv1.ValidatingAdmissionPolicy{}
	p.Spec.Validations = []admissionv1.Validation{{Expression: "object.metadata.name == 'web'"}}
	kind := Kind{Kind: schema.GroupVersionKind{Version: "v1", Kind: "A"}, Schema: &Schema{Type: "object"}}
	for b.Loop() {
		if _, err := Check(p, []Kind{kind}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
