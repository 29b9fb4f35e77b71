// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontree

// Tree is a value of JSON: the object, or a part of it.
type Tree struct{ Value any }

// At returns the value at a path of names.
func (t Tree) At(path ...string) Tree {
	for _, name := range path {
		m, _ := t.Value.(map[string]any)
		t = Tree{m[name]}
	}
	return t
}

// Text returns the string at a path.
func (t Tree) Text(path ...string) string {
	s, _ := t.At(path...).Value.(string)
	return s
}

// Flag returns the bool at a path.
func (t Tree) Flag(path ...string) bool {
	b, _ := t.At(path...).Value.(bool)
	return b
}

// Number returns the whole number at a path, and otherwise if there is none.
func (t Tree) Number(otherwise int64, path ...string) int64 {
	switch n := t.At(path...).Value.(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	}
	return otherwise
}

// List returns the elements of the list at a path.
func (t Tree) List(path ...string) []Tree {
	values, _ := t.At(path...).Value.([]any)
	trees := make([]Tree, len(values))
	for i, v := range values {
		trees[i] = Tree{v}
	}
	return trees
}

// Named returns the element of the list at a path that has a name in the field key.
func (t Tree) Named(key, name string, path ...string) Tree {
	for _, element := range t.List(path...) {
		if element.Text(key) == name {
			return element
		}
	}
	return Tree{}
}
