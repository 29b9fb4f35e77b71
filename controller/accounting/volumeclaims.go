// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// storageClassSuffix stands between a storage class and a resource that is limited for that
// class alone, as in "gold.storageclass.storage.k8s.io/requests.storage".
// Source: k8s.io/kubernetes/pkg/quota/v1/evaluator/core.
const storageClassSuffix = ".storageclass.storage.k8s.io/"

// PersistentVolumeClaim returns what a claim counts for, in all and for its storage class. The
// storage is what it requests or, while it shrinks, what is still allocated; in whole bytes.
func PersistentVolumeClaim(c *corev1.PersistentVolumeClaim) corev1.ResourceList {
	used := corev1.ResourceList{
		CountName(PersistentVolumeClaims):     number(1),
		corev1.ResourcePersistentVolumeClaims: number(1),
	}
	class := storageClass(c)
	if class != "" {
		used[ofClass(class, corev1.ResourcePersistentVolumeClaims)] = number(1)
	}
	if storage, ok := storageOf(c); ok {
		used[corev1.ResourceRequestsStorage] = storage
		if class != "" {
			used[ofClass(class, corev1.ResourceRequestsStorage)] = storage
		}
	}
	return used
}

func ofClass(class string, name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(class+storageClassSuffix) + name
}

// storageClass returns the storage class of a claim. The annotation is older than the field
// and counts before it.
func storageClass(c *corev1.PersistentVolumeClaim) string {
	if class, ok := c.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		return class
	}
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return ""
}

func storageOf(c *corev1.PersistentVolumeClaim) (resource.Quantity, bool) {
	storage, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return storage, false
	}
	if allocated, ok := c.Status.AllocatedResources[corev1.ResourceStorage]; ok && allocated.Cmp(wholeBytes(storage)) > 0 {
		storage = allocated
	}
	return wholeBytes(storage), true
}

// wholeBytes rounds up. The API server refuses a status of a quota with parts of bytes.
func wholeBytes(q resource.Quantity) resource.Quantity {
	q = q.DeepCopy()
	q.RoundUp(0)
	return q
}

// isOfVolumeClaims reports whether PersistentVolumeClaims count for a resource of quotas.
func isOfVolumeClaims(name corev1.ResourceName) bool {
	if name == CountName(PersistentVolumeClaims) {
		return true
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage} {
		if name == resource || strings.HasSuffix(string(name), storageClassSuffix+string(resource)) {
			return true
		}
	}
	return false
}
