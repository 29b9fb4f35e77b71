// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"strings"

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

// String returns the path and what happened there, without the values.
func (d Difference) String() string {
	var b strings.Builder
	b.WriteString(string(d.Op))
	b.WriteByte(' ')
	b.WriteString(d.Path.String())
	return b.String()
}

// maxDepth is how deep differences are looked for. What differs further down is told as
// a whole at this depth. No kind known to us is half as deep; the limit bounds what a
// tree made to be costly can cost.
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

func compareDifferences(a, b Difference) int {
	if c := a.Path.Compare(b.Path); c != 0 {
		return c
	}
	return order(a.Op) - order(b.Op)
}

func order(op event.Op) int {
	switch op {
	case event.Remove:
		return 0
	case event.Add:
		return 1
	case event.Replace:
	}
	return 2
}

// comparison is a Compare on its way: path is where it is.
type comparison struct {
	path  Path
	found []Difference
}

func (c *comparison) push(e Element) { c.path = append(c.path, e) }
func (c *comparison) pop()           { c.path = c.path[:len(c.path)-1] }

// tell notes a difference at the path.
func (c *comparison) tell(op event.Op, from, to any) {
	c.found = append(c.found, Difference{Path: slices.Clone(c.path), Op: op, From: from, To: to})
}

// tellAt notes a difference one element below the path.
func (c *comparison) tellAt(e Element, op event.Op, from, to any) {
	c.push(e)
	c.tell(op, from, to)
	c.pop()
}

// values compares what is on both sides.
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
		c.tell(event.Replace, from, to)
	}
}

func (c *comparison) maps(from, to map[string]any, n *node) {
	for k, a := range from {
		e := Element{Kind: Field, Name: k}
		b, ok := to[k]
		if !ok {
			c.tellAt(e, event.Remove, a, nil)
			continue
		}
		c.push(e)
		c.values(a, b, n.field(k))
		c.pop()
	}
	for k, b := range to {
		if _, ok := from[k]; !ok {
			c.tellAt(Element{Kind: Field, Name: k}, event.Add, nil, b)
		}
	}
}

func (c *comparison) lists(from, to []any, n *node) {
	if equalLists(from, to) {
		return
	}
	if n.isSet() {
		if a, ok := setOf(from); ok {
			if b, ok := setOf(to); ok {
				c.matched(a, b, n)
				return
			}
		}
	}
	if a, b, ok := keyed(from, to, n); ok {
		c.matched(a, b, n)
		return
	}
	c.sequence(from, to, n)
}
