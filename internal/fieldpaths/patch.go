// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpaths

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// most bounds the paths of one write that are looked for.
const most = 64

// paths collects paths.
type paths struct {
	closed func(path string) bool // a path that is not followed
	all    []string
}

func (p *paths) add(path string) bool {
	if path != "" && !slices.Contains(p.all, path) {
		p.all = append(p.all, path)
	}
	return len(p.all) < most
}

func field(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./[]"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// closedFor returns the paths of a kind that have secrets below them.
func closedFor(group, kind string) func(string) bool {
	if group == "" && kind == "Secret" {
		return func(path string) bool { return path == "data" || path == "stringData" }
	}
	return func(string) bool { return false }
}

// identity reports whether a path has the name of the object, and not a field that a write changes.
func identity(path string) bool {
	switch path {
	case "apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
		"metadata.managedFields", "metadata.generation", "metadata.creationTimestamp":
		return true
	}
	return false
}

// OfMerge returns the paths that a merge patch, a strategic merge patch or an apply configuration for an object of a
// kind has. A patch that is not JSON has none.
func OfMerge(group, kind string, patch []byte) []string {
	var value any
	if json.Unmarshal(patch, &value) != nil {
		return nil
	}
	p := paths{closed: closedFor(group, kind)}
	p.value("", value)
	return p.all
}

// OfJSON returns the paths that a JSON patch (RFC 6902) changes.
func OfJSON(group, kind string, patch []byte) []string {
	var operations []struct {
		Op, Path, From string
	}
	if json.Unmarshal(patch, &operations) != nil {
		return nil
	}
	p := paths{closed: closedFor(group, kind)}
	for _, o := range operations {
		if o.Op == "test" {
			continue
		}
		if !p.pointer(o.Path) || o.Op == "move" && !p.pointer(o.From) {
			break
		}
	}
	return p.all
}

// pointer adds the path of a JSON pointer (RFC 6901). It ends before the index of a list.
func (p *paths) pointer(pointer string) bool {
	path := ""
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if part == "-" || strings.Trim(part, "0123456789") == "" || p.closed(path) {
			break
		}
		path = field(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return p.add(path)
}

// value adds the paths of a value, and reports whether more paths may be added.
func (p *paths) value(path string, value any) bool {
	if identity(path) {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		if len(value) > 0 && !p.closed(path) {
			for _, name := range slices.Sorted(maps.Keys(value)) {
				if !strings.HasPrefix(name, "$") && !p.value(field(path, name), value[name]) {
					return false
				}
			}
			return true
		}
	case []any:
		return p.list(path, value)
	}
	return p.add(path)
}

// list adds the paths of a list: those of its elements, if all have names.
func (p *paths) list(path string, list []any) bool {
	for _, element := range list {
		fields, _ := element.(map[string]any)
		key, name := nameIn(fields)
		if name == "" {
			return p.add(path)
		}
		before := len(p.all)
		for _, f := range slices.Sorted(maps.Keys(fields)) {
			if f != key && !strings.HasPrefix(f, "$") && !p.value(field(path+"["+name+"]", f), fields[f]) {
				return false
			}
		}
		if len(p.all) == before && !p.add(path+"["+name+"]") {
			return false
		}
	}
	return len(list) > 0 || p.add(path)
}

// nameIn returns the field by which an element of a list is named, and the name.
func nameIn(fields map[string]any) (key, name string) {
	for _, key := range [...]string{"name", "key", "type", "uid"} {
		if name, ok := fields[key].(string); ok && name != "" {
			return key, name
		}
	}
	return "", ""
}
