// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterroleaggregation

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/manager"
)

func roleOf(name string, resources ...string) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, resource := range resources {
		role.Rules = append(role.Rules, readOf(resource))
	}
	return role
}

func readOf(resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}
}

// resources names the resources of rules, in their order.
func resources(rules []rbacv1.PolicyRule) string {
	var names []string
	for _, rule := range rules {
		names = append(names, rule.Resources...)
	}
	return strings.Join(names, " ")
}

func TestTheRulesOfASumAreThoseOfItsPartsInOrderAndOnce(t *testing.T) {
	type parts = [][]*rbacv1.ClusterRole
	for name, c := range map[string]struct {
		parts parts
		want  string
	}{
		"nothing is matched":                  {parts{nil, {}}, ""},
		"in the order of names":               {parts{{roleOf("b", "pods"), roleOf("a", "nodes")}}, "nodes pods"},
		"in the order of selectors":           {parts{{roleOf("b", "pods")}, {roleOf("a", "nodes")}}, "pods nodes"},
		"a rule of two parts stands once":     {parts{{roleOf("a", "pods"), roleOf("b", "nodes", "pods")}}, "pods nodes"},
		"a part of two selectors counts once": {parts{{roleOf("a", "pods")}, {roleOf("a", "pods")}}, "pods"},
		"a role is no part of itself":         {parts{{roleOf("self", "secrets"), roleOf("a", "pods")}}, "pods"},
		"a part without rules":                {parts{{roleOf("a"), roleOf("b", "pods")}}, "pods"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resources(union("self", c.parts)); got != c.want {
				t.Errorf("the sum is %q, want %q", got, c.want)
			}
		})
	}
}

func TestNoListAndAnEmptyListInARuleAreTheSame(t *testing.T) {
	a, b := readOf("pods"), readOf("pods")
	b.ResourceNames = []string{}
	rules := union("self", [][]*rbacv1.ClusterRole{{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Rules: []rbacv1.PolicyRule{a, b}}}})
	if len(rules) != 1 {
		t.Errorf("%d rules, want 1", len(rules))
	}
}

func TestTheSumDoesNotDependOnTheOrderOfTheCache(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var part []*rbacv1.ClusterRole
		for name, resources := range rapid.MapOf(rapid.StringMatching("[a-e]"), rapid.SliceOfN(rapid.SampledFrom([]string{"pods", "nodes", "secrets"}), 0, 3)).Draw(t, "roles") {
			part = append(part, roleOf(name, resources...))
		}
		once := union("self", [][]*rbacv1.ClusterRole{part})
		again := union("self", [][]*rbacv1.ClusterRole{rapid.Permutation(part).Draw(t, "order")})
		if !slices.Equal(strings.Fields(resources(once)), strings.Fields(resources(again))) {
			t.Fatalf("%v and %v", once, again)
		}
	})
}

func TestAnEmptySumIsSentAsAnEmptyList(t *testing.T) {
	sent, err := json.Marshal(configurationOf(roleOf("self"), union("self", nil)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(sent), `"rules":[]`) {
		t.Errorf("%s does not say that there are no rules", sent)
	}
}

func TestNegativeWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New with -1 workers = %v, want an error that says so", err)
	}
}
