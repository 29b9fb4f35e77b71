// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// Schema returns a JSON Schema of the file, for editors. It has the keys and the types of their
// values; Parse checks what they mean together.
func Schema() ([]byte, error) {
	schema := schemaOf(reflect.TypeFor[Config](), "")
	schema["$schema"] = "http://json-schema.org/draft-07/schema#" // the newest that all editors read
	schema["title"] = "The configuration of setpoint watch, " + Version
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		return nil, fmt.Errorf("encoding the schema of configurations: %w", err)
	}
	return b.Bytes(), nil
}

type jsonSchema = map[string]any

// required are the keys that a mapping must have, by its type.
var required = map[reflect.Type][]string{
	reflect.TypeFor[Config]():      {"apiVersion"},
	reflect.TypeFor[Sink]():        {"name"},
	reflect.TypeFor[Route]():       {"sinks"},
	reflect.TypeFor[sink.File]():   {"path"},
	reflect.TypeFor[sink.Mail]():   {"server", "from", "to"},
	reflect.TypeFor[sink.Header](): {"name"},
}

// schemaOf returns the schema of a type that stands at a key.
func schemaOf(of reflect.Type, key string) jsonSchema {
	switch {
	case of == reflect.TypeFor[time.Duration]():
		return jsonSchema{"type": "string", "pattern": `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)|^0$`}
	case of == reflect.TypeFor[sink.Secret]():
		return jsonSchema{"type": "string"}
	}
	switch of.Kind() {
	case reflect.Pointer: // a sort of sink, whose options may be left out
		schema := schemaOf(of.Elem(), key)
		schema["type"] = []string{"object", "null"}
		return schema
	case reflect.Slice:
		return jsonSchema{"type": "array", "items": schemaOf(of.Elem(), key)}
	case reflect.Bool:
		return jsonSchema{"type": "boolean"}
	case reflect.Int:
		return jsonSchema{"type": "integer", "minimum": 0}
	case reflect.Struct:
		properties := jsonSchema{}
		for _, f := range fieldsOf(of) {
			properties[f.key] = schemaOf(f.of, f.key)
		}
		schema := jsonSchema{"type": "object", "properties": properties, "additionalProperties": false}
		if keys := required[of]; keys != nil {
			schema["required"] = keys
		}
		return schema
	default:
		schema := jsonSchema{"type": "string"}
		if allowed := allowed(key); allowed != nil {
			schema["enum"] = allowed
		}
		return schema
	}
}

// allowed are the texts that may stand at a key, or in its list; nil if they cannot be listed.
func allowed(key string) []string {
	switch key {
	case "apiVersion":
		return []string{Version}
	case "show", "classes":
		return words(event.Classes())
	case "verbs":
		return words(event.Verbs())
	case "form":
		return sink.Forms()
	case "mode":
		return []string{sink.ModeStructured, sink.ModeBatch}
	case "markup":
		return []string{sink.MarkupMarkdown, sink.MarkupSlack, sink.MarkupPlain, sink.MarkupNone}
	}
	return nil
}
