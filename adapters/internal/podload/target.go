// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TargetLabel is the label by which trust-manager selects the objects that it caches.
// Source: github.com/cert-manager/trust-manager/pkg/apis/trust/v1alpha1, BundleLabelKey.
const TargetLabel = "trust.cert-manager.io/bundle"

// Target is a ConfigMap as trust-manager writes one into each namespace. It caches the metadata of
// these, and nothing else in such numbers.
func Target(i int) *corev1.ConfigMap {
	yes := true
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d", i), Name: "public-bundle", UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i*i)),
			Labels:          map[string]string{TargetLabel: "public-bundle"},
			Annotations:     map[string]string{"trust.cert-manager.io/hash": fmt.Sprintf("%064x", 7919)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "trust.cert-manager.io/v1alpha1", Kind: "Bundle", Name: "public-bundle", UID: "bundle", Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "trust-manager", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:ca-certificates.crt":{}},"f:metadata":{"f:annotations":{"f:trust.cert-manager.io/hash":{}},"f:labels":{"f:trust.cert-manager.io/bundle":{}},"f:ownerReferences":{"k:{\"uid\":\"bundle\"}":{}}}}`),
			}},
		},
		Data: map[string]string{"ca-certificates.crt": "certificates"},
	}
}
