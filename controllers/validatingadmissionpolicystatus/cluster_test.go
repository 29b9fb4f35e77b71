// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package validatingadmissionpolicystatus

import (
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func policyOf(name, expression string, rules ...admissionv1.NamedRuleWithOperations) *admissionv1.ValidatingAdmissionPolicy {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range rules {
		rules[i].Operations = []admissionv1.OperationType{admissionv1.Create}
	}
	p.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: rules}
	p.Spec.Validations = []admissionv1.Validation{{Expression: expression}}
	return p
}

func TestAPolicyGetsWarningsAboutItsExpressions(t *testing.T) {
	cluster := shared.Get(t)
	p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	policies := client.For[*admissionv1.ValidatingAdmissionPolicy](cluster.Client)
	create := func(policy *admissionv1.ValidatingAdmissionPolicy) {
		t.Helper()
		if _, err := policies.Create(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = policies.Delete(t.Context(), object.KeyOf(policy)) }) // an aid to later tests
	}
	checked := func(name string, holds func(string) bool) *admissionv1.ValidatingAdmissionPolicy {
		t.Helper()
		var policy *admissionv1.ValidatingAdmissionPolicy
		controlplanetest.Eventually(t, "policy "+name+" is checked", func() bool {
			var err error
			if policy, err = policies.Get(t.Context(), object.Key{Name: name}); err != nil {
				t.Fatal(err)
			}
			var all []string
			if policy.Status.TypeChecking != nil {
				for _, w := range policy.Status.TypeChecking.ExpressionWarnings {
					all = append(all, w.FieldRef+": "+w.Warning)
				}
			}
			return policy.Status.ObservedGeneration == policy.Generation && holds(strings.Join(all, "\n"))
		})
		return policy
	}
	wrong := func(text string) bool { return strings.Contains(text, "undefined field 'replicsa'") }
	right := func(text string) bool { return text == "" }

	deployments := rule("apps", "v1", "deployments")
	create(policyOf("right", "object.spec.replicas < 5", deployments))
	create(policyOf("wrong", "object.spec.replicsa < 5", deployments))
	checked("right", right)
	policy := checked("wrong", wrong)

	policy.Spec.Validations[0].Expression = "object.spec.replicas < 5"
	if _, err := policies.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	checked("wrong", right)

	// A custom kind that is defined after the policy.
	kind := object.Resource{Group: "policy.example.com", Version: "v1", Plural: "gates", Kind: "Gate"}
	create(policyOf("later", "object.metadata.name == 5", rule(kind.Group, kind.Version, kind.Plural)))
	checked("later", right)
	controlplanetest.Eventually(t, "it says what is not served", func() bool {
		return strings.Contains(strings.Join(p.Reasons("later"), "\n"), "the server does not serve gates")
	})
	cluster.Define(t, kind)
	t.Cleanup(func() { cluster.Undefine(t, kind) })
	checked("later", func(text string) bool {
		return strings.Contains(text, "policy.example.com/v1, Kind=Gate: ERROR: <input>:1:22: found no matching overload for '_==_' applied to '(string, int)'")
	})
}
