// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

func TestReasonsSayWhyANamespaceStillExists(t *testing.T) {
	plain := &corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}}}
	held := plain.DeepCopy()
	held.ObjectMeta = metav1.ObjectMeta{Finalizers: []string{"example.com/a"}}
	held.Spec.Finalizers = append(held.Spec.Finalizers, "example.com/b")
	for _, c := range []struct {
		name  string
		ns    *corev1.Namespace
		found findings
		want  []string
	}{
		{"empty", plain, findings{}, nil},
		{"objects with a finalizer", plain, findings{left: []leftover{{resource: object.Resource{Version: "v1", Plural: "pods", Kind: "Pod"},
			objects: map[types.UID]string{"u": "a", "v": "b"}, finalizers: map[string]int{"example.com/f": 1}, deleting: 2}}}, []string{
			"FinalizersRemain: 1 object of the namespace has the finalizer example.com/f (until the program that serves the finalizer removes it)",
			"ContentRemains: pods: 2 objects are left, of which 2 are being deleted (until they are gone)",
		}},
		{"a group that is away, and a kind that cannot be deleted", plain, findings{discovery: errors.New("metrics.k8s.io is away"), failures: []error{errors.New("no")}}, []string{
			"KindsNotKnown: the kinds of an API group are not known, and the namespace may have objects of them: metrics.k8s.io is away (until the group is served, or its APIService is removed)",
			"DeletionFailed: objects of 1 kind could not be deleted: no (until the deletion succeeds)",
		}},
		{"finalizers of others", held, findings{}, []string{
			"OtherFinalizers: the namespace is empty and has the finalizer example.com/a (until the program that serves the finalizer removes it)",
			"OtherFinalizers: the namespace is empty and has the finalizer example.com/b (until the program that serves the finalizer removes it)",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, r := range c.found.reasons(c.ns) {
				got = append(got, r.Code+": "+r.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the reasons are\n%q, want\n%q", got, c.want)
			}
		})
	}
}
