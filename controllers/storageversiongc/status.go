// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversiongc

import (
	"slices"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// without returns the status of a StorageVersion without the API servers that are gone.
func without(was *internalv1alpha1.StorageVersion, gone map[string]bool, now metav1.Time) internalv1alpha1.StorageVersionStatus {
	status := *was.Status.DeepCopy()
	status.StorageVersions = slices.DeleteFunc(status.StorageVersions, func(v internalv1alpha1.ServerStorageVersion) bool { return gone[v.APIServerID] })
	before := status.CommonEncodingVersion
	status.CommonEncodingVersion = common(status.StorageVersions)
	setCondition(&status, before, was.Generation, now)
	return status
}

// common returns the version in which all API servers store the kind, or nil if there is none.
func common(versions []internalv1alpha1.ServerStorageVersion) *string {
	if len(versions) == 0 {
		return nil
	}
	first := versions[0].EncodingVersion
	for _, v := range versions {
		if v.EncodingVersion != first {
			return nil
		}
	}
	return &first
}

// setCondition sets AllEncodingVersionsEqual. Its time changes with its status, and with the
// common version.
// Source: k8s.io/apiserver/pkg/storageversion, SetCommonEncodingVersion.
func setCondition(status *internalv1alpha1.StorageVersionStatus, before *string, generation int64, now metav1.Time) {
	want := internalv1alpha1.StorageVersionCondition{
		Type: internalv1alpha1.AllEncodingVersionsEqual, Status: internalv1alpha1.ConditionFalse, ObservedGeneration: generation,
		LastTransitionTime: now, Reason: "CommonEncodingVersionUnset", Message: "Common encoding version unset",
	}
	if status.CommonEncodingVersion != nil {
		want.Status, want.Reason, want.Message = internalv1alpha1.ConditionTrue, "CommonEncodingVersionSet", "Common encoding version set"
	}
	other := before != nil && status.CommonEncodingVersion != nil && *before != *status.CommonEncodingVersion
	for i, is := range status.Conditions {
		if is.Type != want.Type {
			continue
		}
		if is.Status == want.Status && !other {
			want.LastTransitionTime = is.LastTransitionTime
		}
		status.Conditions[i] = want
		return
	}
	status.Conditions = append(status.Conditions, want)
}
