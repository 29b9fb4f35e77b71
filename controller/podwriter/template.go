// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
)

// Owner is whose Pods are written.
type Owner struct {
	Object object.Object
	Kind   object.Resource
}

func (o Owner) key() object.Key { return object.KeyOf(o.Object) }

// FromTemplate returns a Pod that owner controls, with the labels, annotations,
// finalizers and spec of a template, and the owner's name and a dash as its generateName. The
// Pod shares them with the template: copy what you change.
//
// Source: k8s.io/kubernetes/pkg/controller, GetPodFromTemplate.
func FromTemplate(owner Owner, template *corev1.PodTemplateSpec) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       owner.Object.GetNamespace(),
			GenerateName:    generateName(owner.Object.GetName()),
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{owned.By(owner.Object, owner.Kind.GroupVersionKind())},
		},
		Spec: template.Spec,
	}
}

// generateName returns the prefix of the names of an owner's Pods. The longest name of an
// owner has no room for a dash: the server refuses a prefix that is longer than a name.
//
// Source: k8s.io/kubernetes/pkg/controller, getPodsPrefix.
func generateName(owner string) string {
	if len(owner) == validation.DNS1123SubdomainMaxLength {
		return owner
	}
	return owner + "-"
}
