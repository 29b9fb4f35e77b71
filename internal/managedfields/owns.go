// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managedfields

import "strings"

// Owns reports whether the entry has a field, by its path, such as "spec.replicas", or a field below it. Of an element of a list, such
// as "spec.taints[dedicated]", it looks for the list. Names of fields may have dots, as those of labels do.
func (e *Entry) Owns(path string) bool {
	if list, _, isElement := strings.Cut(path, "["); isElement {
		path = list
	}
	return owns(e.FieldSet(), path)
}

func owns(fields map[string]any, path string) bool {
	for key, value := range fields {
		name, isField := strings.CutPrefix(key, "f:")
		if !isField {
			continue
		}
		if name == path {
			return true
		}
		if below, found := strings.CutPrefix(path, name+"."); found {
			deeper, _ := value.(map[string]any)
			if owns(deeper, below) {
				return true
			}
		}
	}
	return false
}
