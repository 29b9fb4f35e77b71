// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/watch/sink"
)

func TestTheSchemaIsTheOneInTheDocuments(t *testing.T) {
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../docs/watch-config.schema.json", schema)
}

func TestTheWordsOfTheSchemaAreThoseThatAreTaken(t *testing.T) {
	for _, form := range allowed("form") {
		if err := (sink.Options{Terminal: &sink.Terminal{Form: form}}).Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, mode := range allowed("mode") {
		if err := (sink.Options{Webhook: &sink.Webhook{URL: sink.NewSecret("https://example.com"), Mode: mode}}).Validate(); err != nil {
			t.Error(err)
		}
	}
}

// schemaPaths returns the paths of all keys, with [] for any element of a list.
func schemaPaths(t *testing.T) []string {
	t.Helper()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Properties map[string]schema
		Items      *schema
	}
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	var paths []string
	var collect func(s schema, path string)
	collect = func(s schema, path string) {
		if path != "" {
			paths = append(paths, path)
		}
		for key, inner := range s.Properties {
			collect(inner, join(path, key))
		}
		if s.Items != nil && s.Items.Properties != nil {
			for key, inner := range s.Items.Properties {
				collect(inner, join(path+"[]", key))
			}
		}
	}
	collect(root, "")
	slices.Sort(paths)
	return paths
}
