// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

// Schema says how the lists of a kind are merged. It is immutable. The zero Schema knows
// nothing: lists are matched by their shape.
type Schema struct {
	root *node
}

// node is what is known of the value at some path. Nodes of types that contain themselves
// lead back to themselves. A nil node knows nothing.
type node struct {
	fields map[string]*node // of an object
	each   *node            // the elements of a list, or the entries of a map
	keys   []string         // of a list whose elements have them
	set    bool             // of a list of scalars that is a set
}

// field returns what is known of a field of an object.
func (n *node) field(name string) *node {
	if n == nil {
		return nil
	}
	if f, ok := n.fields[name]; ok {
		return f
	}
	return n.each
}

// item returns what is known of the elements of a list.
func (n *node) item() *node {
	if n == nil {
		return nil
	}
	return n.each
}

func (n *node) listKeys() []string {
	if n == nil {
		return nil
	}
	return n.keys
}

func (n *node) isSet() bool { return n != nil && n.set }

// IsZero reports whether nothing is known.
func (s Schema) IsZero() bool { return s.root == nil }
