// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/controller/revisions"
)

func TestNewSetIsNamedAndLabelledByItsTemplate(t *testing.T) {
	d := deployment(3)
	d.Spec.MinReadySeconds = 7
	d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}
	set := newSet(d, 2)
	hash := revisions.HashTemplate(&d.Spec.Template, nil)
	if set.Name != "web-"+hash || set.Namespace != d.Namespace || *set.Spec.Replicas != 2 || set.Spec.MinReadySeconds != 7 {
		t.Errorf("unexpected set %s/%s with %d replicas, minReadySeconds %d", set.Namespace, set.Name, *set.Spec.Replicas, set.Spec.MinReadySeconds)
	}
	for where, labels := range map[string]map[string]string{
		"set": set.Labels, "template": set.Spec.Template.Labels, "selector": set.Spec.Selector.MatchLabels,
	} {
		if labels[appsv1.DefaultDeploymentUniqueLabelKey] != hash || labels["app"] != "web" || len(labels) != 2 {
			t.Errorf("labels of the %s = %v", where, labels)
		}
	}
	if len(set.Spec.Selector.MatchExpressions) != 1 {
		t.Errorf("the selector lost its expressions: %v", set.Spec.Selector)
	}
	if !metav1.IsControlledBy(set, d) {
		t.Errorf("owner references = %v, want the Deployment as controller", set.OwnerReferences)
	}
	if _, changed := d.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; changed {
		t.Error("the Deployment that was given has been changed")
	}
	if !sameTemplate(&set.Spec.Template, &d.Spec.Template) {
		t.Error("the new set is not found by its template")
	}
}

func TestNameOfASetIsCutWhereTheDeploymentsIsTooLong(t *testing.T) {
	name := setName(strings.Repeat("a", 253), "7d8f9c6b5c")
	if len(name) != validation.DNS1123SubdomainMaxLength || !strings.HasSuffix(name, "a-7d8f9c6b5c") {
		t.Errorf("name of %d bytes: %s", len(name), name)
	}
}

func TestCollisionCountChangesTheName(t *testing.T) {
	d := deployment(1)
	first := newSet(d, 1).Name
	d.Status.CollisionCount = raised(nil)
	second := newSet(d, 1).Name
	d.Status.CollisionCount = raised(d.Status.CollisionCount)
	if third := newSet(d, 1).Name; first == second || second == third || *d.Status.CollisionCount != 2 {
		t.Errorf("names %s, %s and %s after %d collisions", first, second, third, *d.Status.CollisionCount)
	}
}
