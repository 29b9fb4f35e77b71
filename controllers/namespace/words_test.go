// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// People and tools read these words.
// Source: k8s.io/kubernetes/pkg/controller/namespace/deletion, status_condition_utils.go.
func TestThatAllIsWellIsSaidInUpstreamsWords(t *testing.T) {
	want := []corev1.NamespaceCondition{
		{Type: "NamespaceDeletionDiscoveryFailure", Status: "False", Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
		{Type: "NamespaceDeletionGroupVersionParsingFailure", Status: "False", Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
		{Type: "NamespaceDeletionContentFailure", Status: "False", Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
		{Type: "NamespaceContentRemaining", Status: "False", Reason: "ContentRemoved", Message: "All content successfully removed"},
		{Type: "NamespaceFinalizersRemaining", Status: "False", Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
	}
	have := (&findings{}).conditions()
	if len(have) != len(want) {
		t.Fatalf("%d conditions, want %d", len(have), len(want))
	}
	for i := range want {
		if have[i] != want[i] {
			t.Errorf("%+v, want %+v", have[i], want[i])
		}
	}
}
