// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/managedfields"
)

// Entries are read as the server wrote them, and what is no entry is ignored.
func TestEntries(t *testing.T) {
	fields := map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}
	got := managedfields.Of(map[string]any{"metadata": map[string]any{"managedFields": []any{
		map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-03-02T11:57:00Z", "fieldsV1": fields},
		"no entry", nil,
		map[string]any{"manager": "scaler", "operation": "Update", "subresource": "scale", "time": "yesterday", "fieldsV1": "no fields"},
	}}})
	want := []managedfields.Entry{
		{Manager: "kubectl", Operation: "Update", APIVersion: "apps/v1", Time: time.Date(2026, 3, 2, 11, 57, 0, 0, time.UTC), Fields: fields},
		{Manager: "scaler", Operation: "Update", Subresource: "scale"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the entries are\n%+v, want\n%+v", got, want)
	}
	for _, object := range []map[string]any{nil, {}, {"metadata": "none"}, {"metadata": map[string]any{"managedFields": "none"}}} {
		if got := managedfields.Of(object); got != nil {
			t.Errorf("the entries of %v are %+v, want none", object, got)
		}
	}
}
