// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import (
	"encoding/json"
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
)

// Entry is one entry of managedFields.
type Entry struct {
	Manager, Operation, Subresource, APIVersion string
	// Time is zero if the entry has none: a server notes no time for a write of the scale.
	// Source: k8s.io/apimachinery/pkg/util/managedfields, ScaleHandler.
	Time time.Time
	// Fields is the fieldsV1, as decoded from JSON. It belongs to the object.
	// Source of the format: sigs.k8s.io/structured-merge-diff, fieldpath/serialize.go.
	Fields map[string]any
	// Raw is the fieldsV1 of an object that was decoded without it. Fields is nil then.
	Raw json.RawMessage
}

// FieldSet returns the fieldsV1, which it decodes if it is not. It is nil if it cannot be decoded.
func (e *Entry) FieldSet() map[string]any {
	if e.Fields != nil || len(e.Raw) == 0 {
		return e.Fields
	}
	var fields map[string]any
	if err := json.Unmarshal(e.Raw, &fields); err != nil {
		return nil
	}
	return fields
}

// Of returns the entries of an object in their order.
func Of(object map[string]any) (all []Entry) {
	for _, m := range (jsontree.Tree{Value: object}).List("metadata", "managedFields") {
		if _, isObject := m.Value.(map[string]any); !isObject {
			continue
		}
		e := Entry{Manager: m.Text("manager"), Operation: m.Text("operation"), Subresource: m.Text("subresource"), APIVersion: m.Text("apiVersion")}
		switch fields := m.At("fieldsV1").Value.(type) {
		case map[string]any:
			e.Fields = fields
		case json.RawMessage:
			e.Raw = fields
		}
		e.Time, _ = time.Parse(time.RFC3339, m.Text("time")) // without a time it is zero
		all = append(all, e)
	}
	return all
}
