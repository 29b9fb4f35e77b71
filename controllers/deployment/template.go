// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/controller/revisions"
)

// newSet returns a ReplicaSet of a Deployment's template with a number of replicas. Its
// name follows from the template, so that creating it twice fails instead of making two.
func newSet(d *appsv1.Deployment, replicas int32) *appsv1.ReplicaSet {
	template := d.Spec.Template.DeepCopy()
	hash := revisions.HashTemplate(template, d.Status.CollisionCount)
	template.Labels = with(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = with(selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       d.Namespace,
			Name:            setName(d.Name, hash),
			Labels:          maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{owned.By(d, kind.GroupVersionKind())},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        &replicas,
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        *template,
		},
	}
}

// setName joins the Deployment's name and the hash, and cuts the former where
// both together are too long for a name.
func setName(deployment, hash string) string {
	most := validation.DNS1123SubdomainMaxLength - len("-") - len(hash)
	return deployment[:min(len(deployment), most)] + "-" + hash
}

// with returns a copy of labels that has one more.
func with(labels map[string]string, key, label string) map[string]string {
	all := make(map[string]string, len(labels)+1)
	maps.Copy(all, labels)
	all[key] = label
	return all
}

// raised returns a collision count that is one higher.
func raised(collisions *int32) *int32 {
	count := int32(1)
	if collisions != nil {
		count += *collisions
	}
	return &count
}
