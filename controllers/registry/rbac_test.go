// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

func TestEveryControllerDeclaresItsRightsAndAsksForNoWildcardsButToDeleteAnything(t *testing.T) {
	for _, d := range Known() {
		declared := slices.Concat(slices.Collect(maps.Values(d.Rights()))...)
		if len(declared) == 0 {
			t.Errorf("%s does not declare which rights it needs", d.Name)
			continue
		}
		for _, rule := range declared {
			if slices.Contains(rule.Verbs, "*") {
				t.Errorf("%s wants every verb on %v", d.Name, rule.Resources)
			}
			if slices.Contains(rule.Resources, "*") && slices.ContainsFunc(rule.Verbs, func(verb string) bool {
				return !slices.Contains([]string{"get", "list", "watch", "patch", "update", "delete", "deletecollection"}, verb)
			}) {
				t.Errorf("%s wants %v on every resource", d.Name, rule.Verbs)
			}
		}
	}
}

func TestRBACIsAnAccountARoleAndABindingForEachController(t *testing.T) {
	chosen, err := Select(Known(), []string{"deployment", "csrcleaner", "csrapproving"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		account object.Key
		want    string
	}{
		"each as its own, as upstream calls it": {object.Key{}, `
ServiceAccount kube-system/certificate-controller
ServiceAccount kube-system/deployment-controller
ClusterRole setpoint:certificatesigningrequest-approving-controller
ClusterRoleBinding setpoint:certificatesigningrequest-approving-controller of kube-system/certificate-controller
ClusterRole setpoint:certificatesigningrequest-cleaner-controller
ClusterRoleBinding setpoint:certificatesigningrequest-cleaner-controller of kube-system/certificate-controller
ClusterRole setpoint:deployment-controller
ClusterRoleBinding setpoint:deployment-controller of kube-system/deployment-controller
`},
		"all as one": {object.Key{Namespace: "ops", Name: "setpoint"}, `
ServiceAccount ops/setpoint
ClusterRole setpoint:certificatesigningrequest-approving-controller
ClusterRoleBinding setpoint:certificatesigningrequest-approving-controller of ops/setpoint
ClusterRole setpoint:certificatesigningrequest-cleaner-controller
ClusterRoleBinding setpoint:certificatesigningrequest-cleaner-controller of ops/setpoint
ClusterRole setpoint:deployment-controller
ClusterRoleBinding setpoint:deployment-controller of ops/setpoint
`},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := RBAC(chosen, c.account)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			text.WriteByte('\n')
			for _, o := range objects {
				text.WriteString(o.GetObjectKind().GroupVersionKind().Kind + " " + object.KeyOf(o).String())
				switch o := o.(type) {
				case *corev1.ServiceAccount:
				case *rbacv1.ClusterRole:
					if len(o.Rules) == 0 {
						t.Errorf("%s has no rules", o.Name)
					}
				case *rbacv1.ClusterRoleBinding:
					if o.RoleRef.Name != o.Name || len(o.Subjects) != 1 {
						t.Errorf("%s binds %v to %v", o.Name, o.Subjects, o.RoleRef)
					}
					text.WriteString(" of " + o.Subjects[0].Namespace + "/" + o.Subjects[0].Name)
				}
				text.WriteByte('\n')
			}
			if text.String() != c.want {
				t.Errorf("it is%s, want%s", text.String(), c.want)
			}
		})
	}
}

func TestRightsInNamespacesAreRolesThere(t *testing.T) {
	chosen, err := Select(Known(), []string{"bootstrapsigner"})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := RBAC(chosen, object.Key{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, o := range objects {
		all = append(all, o.GetObjectKind().GroupVersionKind().Kind+" "+object.KeyOf(o).String())
	}
	const name = "setpoint:bootstrap-signer-controller"
	want := []string{
		"ServiceAccount kube-system/bootstrap-signer", "Role kube-public/" + name, "RoleBinding kube-public/" + name,
		"Role kube-system/" + name, "RoleBinding kube-system/" + name,
	}
	if !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}

func TestAControllerThatDoesNotDeclareItsRightsIsNamed(t *testing.T) {
	_, err := RBAC([]*controllers.Descriptor{{Name: "secretive-controller"}}, object.Key{})
	if err == nil || !strings.Contains(err.Error(), "secretive-controller") {
		t.Errorf("RBAC = %v, want an error that names it", err)
	}
}

func TestWhoRunsInformersForOthersReadsWhatTheyReadAndWritesNothing(t *testing.T) {
	all := InformerRights(Known())
	for _, rule := range slices.Concat(slices.Collect(maps.Values(all))...) {
		if len(rule.Verbs) == 0 {
			t.Errorf("%v: no verbs", rule)
		}
		for _, verb := range rule.Verbs {
			if verb != "list" && verb != "watch" {
				t.Errorf("%s on %v", verb, rule.Resources)
			}
		}
	}
	if len(all["kube-system"]) == 0 || len(all[""]) == 0 {
		t.Errorf("what holds in kube-system alone, and everywhere: %v", all)
	}
	chosen, err := Select(Known(), []string{"csrapproving"})
	if err != nil {
		t.Fatal(err)
	}
	if rules := InformerRights(append(chosen, chosen...))[""]; len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"certificatesigningrequests"}) {
		t.Errorf("for a controller that watches one kind: %v", rules)
	}
}
