// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

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

func (t tree) flag(path ...string) bool {
	b, _ := t.at(path...).value.(bool)
	return b
}

func (t tree) number(otherwise int64, path ...string) int64 {
	switch n := t.at(path...).value.(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	}
	return otherwise
}

func (t tree) list(path ...string) []tree {
	values, _ := t.at(path...).value.([]any)
	trees := make([]tree, len(values))
	for i, v := range values {
		trees[i] = tree{v}
	}
	return trees
}

// condition returns the status and the reason of a condition; both are empty if the object
// has no such condition.
func (t tree) condition(name string) (status, reason string) {
	for _, c := range t.list("status", "conditions") {
		if c.text("type") == name {
			return c.text("status"), c.text("reason")
		}
	}
	return "", ""
}
