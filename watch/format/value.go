// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/json"
	"fmt"
	"strings"
)

// value returns a value in the form for a line: texts have no quotes where that is clear.
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

func count(n int, what string) string { return fmt.Sprint(n, " ", plural(n, what)) }

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

// single reports whether a value is written on the line of its field, and not below it.
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
