// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
)

// written is a Secret with a password, at a version, whose managers wrote at these times.
func written(version, password string, times map[string]string) map[string]any {
	var writers []any
	for _, manager := range []string{"ann", "bob", "carl"} {
		if at, ok := times[manager]; ok {
			entry := map[string]any{"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{
				"f:data": map[string]any{"f:password": map[string]any{}},
			}}
			if at != "" {
				entry["time"] = at
			}
			writers = append(writers, entry)
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": password},
		"metadata": map[string]any{"namespace": "shop", "name": "login", "uid": "1", "resourceVersion": version, "managedFields": writers},
	}
}

const (
	morning = "2026-03-01T08:00:00Z"
	noonday = "2026-03-01T12:00:00Z"
	evening = "2026-03-01T18:00:00Z"
)

func TestAStateThatWasKeptIsComparedWithTheNextOne(t *testing.T) {
	kind := event.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	key := []byte("a key of both runs")
	before, after := New(Options{Kind: kind, Key: key}), New(Options{Kind: kind, Key: key})

	old := written("1", "canary", map[string]string{"ann": morning, "carl": ""})
	kept := before.Keep(old)
	text, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "canary") || strings.Contains(string(text), "fieldsV1") {
		t.Errorf("what is kept has a hidden value, or the fields of managers: %s", text)
	}

	same := after.Event(Change{Verb: event.Updated, Old: kept, Kept: true, Missed: true, New: written("2", "canary", map[string]string{"ann": morning, "carl": ""})})
	if len(same.Fields) != 0 {
		t.Errorf("an equal state has the changes %v", same.Fields)
	}
	e := after.Event(Change{Verb: event.Updated, Old: kept, Kept: true, Missed: true, New: written("3", "other", map[string]string{"ann": noonday, "bob": evening, "carl": ""})})
	if len(e.Fields) != 1 || e.Fields[0].Path != "data.password" || !e.Fields[0].Hidden || e.Fields[0].From == e.Fields[0].To {
		t.Errorf("the changes are %v, want one, hidden", e.Fields)
	}
	var names []string
	for _, a := range e.Authors {
		names = append(names, a.Manager)
	}
	if want := []string{"bob", "ann", "carl"}; !slices.Equal(names, want) {
		t.Errorf("the authors are %v, want all that wrote since, newest first: %v", names, want)
	}
	gone := after.Event(Change{Verb: event.Deleted, Old: kept, Kept: true, Missed: true})
	if text, _ := json.Marshal(gone.Old); strings.Contains(string(text), "managedFields") || !strings.Contains(string(text), "(hidden ") {
		t.Errorf("the last state of a deleted object is %s", text)
	}

	// Another object of the name has another UID, and equal values are equal all the same.
	replaced := written("4", "canary", nil)
	replaced["metadata"].(map[string]any)["uid"] = "2"
	if e := after.Event(Change{Verb: event.Replaced, Old: kept, Kept: true, Missed: true, New: replaced}); len(e.Fields) != 0 {
		t.Errorf("a replacement with the same values has the changes %v", e.Fields)
	}
}
