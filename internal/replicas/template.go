// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fromTemplate returns the Pod that a demand asks for, without a name. Labels,
// annotations, finalizers and spec are the template's own: the Pod is to be sent, not
// to be changed.
func fromTemplate(d *demand) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       d.key.Namespace,
			GenerateName:    d.key.Name + "-",
			Labels:          d.Template.Labels,
			Annotations:     d.Template.Annotations,
			Finalizers:      d.Template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{d.ownerReference()},
		},
		Spec: d.Template.Spec,
	}
}
