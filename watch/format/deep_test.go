// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// nested is an object of so many levels, of maps and lists in turn.
func nested(levels int) map[string]any {
	var v any = "the end"
	for i := range levels {
		if i%2 == 0 {
			v = []any{v}
		} else {
			v = map[string]any{"a": v}
		}
	}
	return map[string]any{"spec": v}
}

// An object of a few kilobytes must not become a document of megabytes because it is deep, and
// one as deep as API servers take, 10,000 levels, must be written.
func TestADeepObjectIsNotBlownUp(t *testing.T) {
	for _, form := range []Form{YAML, Diff, Text, JSON} {
		size := func(levels int) int {
			var out bytes.Buffer
			old, now := nested(1), nested(levels)
			e := &event.Event{
				ID: "e", Verb: event.Updated, Kind: event.Kind{Version: "v1", Kind: "Widget", Resource: "widgets"},
				Key: object.Key{Name: "w"}, Old: old, New: now, Classes: []event.Class{event.Content},
				Fields: []event.Field{{Path: "spec", Op: event.Replace, From: old["spec"], To: now["spec"], Class: event.Content}},
			}
			if err := New(&out, Options{Form: form, WithObjects: true}).Write(e); err != nil {
				t.Fatalf("%s of %d levels: %v", form, levels, err)
			}
			if form == YAML {
				var got map[string]any
				if err := yaml.Unmarshal(out.Bytes(), &got); err != nil {
					t.Errorf("the YAML of %d levels cannot be read: %v", levels, err)
				}
			}
			if !strings.Contains(out.String(), "the end") && form != Text {
				t.Errorf("%s of %d levels ends early", form, levels)
			}
			return out.Len()
		}
		few, many := size(1000), size(10_000)
		t.Logf("%s: %d bytes of 1000 levels, %d of 10000", form, few, many)
		if input := len(`{"a":[]}`) * 10_000 / 2; many > 4*input {
			t.Errorf("%s: an object of %d bytes is %d bytes of output", form, input, many)
		}
		if many > 20*few {
			t.Errorf("%s: ten times the depth is %d times the output, from %d to %d bytes", form, many/few, few, many)
		}
	}
}
