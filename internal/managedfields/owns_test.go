// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields_test

import (
	"testing"

	"github.com/setpoint-io/setpoint/internal/managedfields"
)

func TestAnEntryOwnsTheFieldsThatItNames(t *testing.T) {
	type m = map[string]any
	e := managedfields.Entry{Fields: m{
		"f:metadata": m{"f:labels": m{".": m{}, "f:app.kubernetes.io/name": m{}}},
		"f:spec":     m{"f:replicas": m{}, "f:taints": m{`k:{"key":"dedicated"}`: m{}}, "f:odd": "text"},
	}}
	for path, want := range map[string]bool{
		"spec.replicas": true, "spec": true, "spec.replica": false, "spec.replicas.below": false, "replicas": false, "": false, "spec.odd.below": false,
		"metadata.labels.app.kubernetes.io/name": true, "metadata.labels.app": false, "spec.taints[dedicated].effect": true, "spec.ports[80]": false,
	} {
		if got := e.Owns(path); got != want {
			t.Errorf("it owns %q: %v, want %v", path, got, want)
		}
	}
	if none := (managedfields.Entry{}); none.Owns("spec") {
		t.Error("an entry without fields owns one")
	}
}
