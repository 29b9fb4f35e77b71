// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpaths_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/fieldpaths"
)

func TestOfPatches(t *testing.T) {
	for _, c := range []struct{ name, kind, patch, want string }{
		{"a field", "Deployment", `{"metadata":{"uid":"u","resourceVersion":"4"},"spec":{"replicas":3}}`, "spec.replicas"},
		{"a label with dots", "Pod", `{"metadata":{"labels":{"app.kubernetes.io/name":"x"}}}`, "metadata.labels[app.kubernetes.io/name]"},
		{"a field that is removed", "Pod", `{"metadata":{"annotations":null}}`, "metadata.annotations"},
		{"elements with names", "Pod", `{"status":{"conditions":[{"type":"Ready","status":"False"}]},"spec":{"containers":[{"name":"web","image":"x"}]}}`,
			"spec.containers[web].image status.conditions[Ready].status"},
		{"elements without names", "Pod", `{"metadata":{"finalizers":["a"]}}`, "metadata.finalizers"},
		{"a directive", "Pod", `{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"u"}]}}`, "metadata.ownerReferences[u]"},
		{"a Secret", "Secret", `{"data":{"password":"aHVudGVyMg=="},"stringData":{"token":"t"}}`, "data stringData"},
		{"a JSON patch", "Pod", `[{"op":"test","path":"/metadata/uid","value":1},{"op":"remove","path":"/metadata/finalizers/0"},{"op":"add","path":"/metadata/labels/a~1b","value":"x"}]`,
			"metadata.finalizers metadata.labels[a/b]"},
		{"a JSON patch of a Secret", "Secret", `[{"op":"add","path":"/data/password","value":"x"}]`, "data"},
		{"no JSON", "Pod", `{`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := fieldpaths.OfMerge
			if strings.HasPrefix(c.patch, "[") {
				of = fieldpaths.OfJSON
			}
			if got := strings.Join(of("", c.kind, []byte(c.patch)), " "); got != c.want {
				t.Errorf("the paths of %s are %q, want %q", c.patch, got, c.want)
			}
		})
	}
}

func TestBetweenTwoStates(t *testing.T) {
	before := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "1", Labels: map[string]string{"a": "1", "b": "2"}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Image: "old"}, {Name: "side"}}}}},
		Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: "Available", LastUpdateTime: metav1.NewTime(time.Unix(1, 0))}}},
	}
	after := before.DeepCopy()
	after.ResourceVersion = "2"
	if got := fieldpaths.Between("apps", "Deployment", before, after); len(got) > 0 {
		t.Errorf("two states that differ in their version alone differ in %q", got)
	}
	delete(after.Labels, "a")
	replicas := int32(3)
	after.Spec.Replicas = &replicas
	after.Spec.Template.Spec.Containers[0].Image = "new"
	after.Status.Conditions[0].LastUpdateTime = metav1.NewTime(time.Unix(2, 0))
	after.Finalizers = []string{"f"}
	want := "metadata.labels.a metadata.finalizers spec.replicas spec.template.spec.containers[web].image status.conditions[Available].lastUpdateTime"
	if got := strings.Join(fieldpaths.Between("apps", "Deployment", before, after), " "); got != want {
		t.Errorf("the paths are\n%q, want\n%q", got, want)
	}
	secret := &corev1.Secret{Data: map[string][]byte{"password": []byte("hunter1")}}
	changed := secret.DeepCopy()
	changed.Data["password"] = []byte("hunter2")
	if got := fmt.Sprint(fieldpaths.Between("", "Secret", secret, changed)); got != "[data]" {
		t.Errorf("the paths of a Secret are %s, want the map alone", got)
	}
	if got := fieldpaths.Between("", "Secret", secret, before); got != nil {
		t.Errorf("two kinds differ in %q, want nothing", got)
	}
}
