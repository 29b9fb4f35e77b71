// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"slices"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Difference is one field, or one subtree, that is not the same.
type Difference struct {
	Path Path
	Op   event.Op
	// From and To are the values, parts of the trees that were compared. From is nil for
	// Add, To for Remove; and either may be nil for a field that is null.
	//
	// At a path that ends in Order they are lists of the elements that both states have,
	// in the order of each: of their keys, or of the elements themselves for sets.
	From, To any
}

// String returns the operation and the path, without the values.
func (d Difference) String() string { return string(d.Op) + " " + d.Path.String() }

// maxDepth is how deep Compare descends. What differs further down is one difference at
// this depth. No kind known to us is half as deep; the limit bounds what a tree made to
// be costly can cost.
const maxDepth = 64

// Compare returns what is different, in the order of the paths; at one path, which can
// only be a position in a list, what was removed comes first. Either tree may be nil,
// which is an empty one.
func Compare(old, new map[string]any, s Schema) []Difference { //nolint:predeclared // old and new are the words
	c := comparison{path: make(Path, 0, 16)}
	c.maps(old, new, s.root)
	slices.SortFunc(c.found, compareDifferences)
	return c.found
}

// operations are in the order of differences at one path.
var operations = []event.Op{event.Remove, event.Add, event.Replace}

func compareDifferences(a, b Difference) int {
	return cmp.Or(a.Path.Compare(b.Path), slices.Index(operations, a.Op)-slices.Index(operations, b.Op))
}

// comparison is a Compare that runs. path is where it is.
type comparison struct {
	path  Path
	found []Difference
}

// add notes a difference at the path.
func (c *comparison) add(op event.Op, from, to any) {
	c.found = append(c.found, Difference{Path: slices.Clone(c.path), Op: op, From: from, To: to})
}

// addAt notes a difference one element below the path.
func (c *comparison) addAt(e Element, op event.Op, from, to any) {
	c.path = append(c.path, e)
	c.add(op, from, to)
	c.path = c.path[:len(c.path)-1]
}

// below compares what both sides have one element below the path.
func (c *comparison) below(e Element, from, to any, n *node) {
	c.path = append(c.path, e)
	c.values(from, to, n)
	c.path = c.path[:len(c.path)-1]
}

func (c *comparison) values(from, to any, n *node) {
	if len(c.path) < maxDepth {
		switch a := from.(type) {
		case map[string]any:
			if b, ok := to.(map[string]any); ok {
				c.maps(a, b, n)
				return
			}
		case []any:
			if b, ok := to.([]any); ok {
				c.lists(a, b, n)
				return
			}
		}
	}
	if !Equal(from, to) {
		c.add(event.Replace, from, to)
	}
}

func (c *comparison) maps(from, to map[string]any, n *node) {
	if sameMap(from, to) {
		return
	}
	for name, a := range from {
		b, ok := to[name]
		if ok && isSame(a, b) {
			continue // most are, and an element of a path is large
		}
		e := Element{Kind: Field, Name: name}
		if ok {
			c.below(e, a, b, n.field(name))
		} else {
			c.addAt(e, event.Remove, a, nil)
		}
	}
	for name, b := range to {
		if _, ok := from[name]; !ok {
			c.addAt(Element{Kind: Field, Name: name}, event.Add, nil, b)
		}
	}
}

func (c *comparison) lists(from, to []any, n *node) {
	if sameList(from, to) || slices.EqualFunc(from, to, Equal) {
		return
	}
	if a, b, ok := matchables(from, to, n); ok {
		c.matched(a, b, n)
	} else {
		c.sequence(from, to, n)
	}
}
