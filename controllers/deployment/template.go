// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"

	"github.com/setpoint-io/setpoint/controller/owned"
)

// templateHash names a Pod template. It is the very number that
// kube-controller-manager computes, so that a cluster keeps its ReplicaSets and
// their Pods when it changes from one to the other: the template printed by spew
// with sorted keys and without addresses, and the collision count where there
// was a collision, hashed by FNV-1a of 32 bits, in letters that make no words.
//
// Source: k8s.io/kubernetes/pkg/controller, ComputeHash.
func templateHash(template *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, dump.ForHash(*template)) // a hash takes everything
	if collisions != nil {
		var count [8]byte // only the lower half is used, and all of it hashed
		binary.LittleEndian.PutUint32(count[:], uint32(*collisions))
		_, _ = h.Write(count[:])
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// newSet returns the ReplicaSet that a Deployment's template asks for, with that
// many replicas. Its name follows from the template, so that creating it twice
// fails instead of making two.
func newSet(d *appsv1.Deployment, replicas int32) *appsv1.ReplicaSet {
	template := d.Spec.Template.DeepCopy()
	hash := templateHash(template, d.Status.CollisionCount)
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
