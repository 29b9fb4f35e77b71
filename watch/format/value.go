// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"fmt"
	"strings"
)

// value returns a value as it is in a line: texts without quotes where that is clear.
func value(v any, columns int) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		s := clean(v)
		if s == "" || strings.TrimSpace(s) != s || strings.Contains(s, "→") {
			s = `"` + s + `"`
		}
		return squeeze(s, columns)
	case map[string]any:
		return "{" + count(len(v), "field") + "}"
	case []any:
		if all := scalars(v); all != "" && width(all) <= columns {
			return all
		}
		return "[" + count(len(v), "item") + "]"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return squeeze(clean(fmt.Sprint(v)), columns)
	}
	return squeeze(clean(string(b)), columns)
}

// scalars returns a list of scalars in brackets, or nothing if it has others in it.
func scalars(list []any) string {
	var each []string
	for _, v := range list {
		switch v.(type) {
		case map[string]any, []any:
			return ""
		}
		each = append(each, value(v, widestValue))
	}
	return "[" + strings.Join(each, " ") + "]"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// single reports whether a value is written behind its field and not below it.
func single(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return !strings.Contains(v, "\n")
	}
	return true
}

// tree reads single fields of an object, and takes what is not there, or is of another
// type, for nothing.
type tree struct{ value any }

func (t tree) at(path ...string) tree {
	for _, name := range path {
		m, _ := t.value.(map[string]any)
		t = tree{m[name]}
	}
	return t
}

func (t tree) text(path ...string) string {
	s, _ := t.at(path...).value.(string)
	return s
}

func (t tree) list(path ...string) []tree {
	values, _ := t.at(path...).value.([]any)
	trees := make([]tree, len(values))
	for i, v := range values {
		trees[i] = tree{v}
	}
	return trees
}

// named returns the element of a list that a field says is the one.
func (t tree) named(key, name string, path ...string) tree {
	for _, element := range t.list(path...) {
		if element.text(key) == name {
			return element
		}
	}
	return tree{}
}
