// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Path leads from the root of an object to a field.
type Path []Element

// ElementKind says what an element of a path chooses.
type ElementKind uint8

// The kinds, in the order in which paths are sorted.
const (
	// Field is a field of an object, or an entry of a map: Name.
	Field ElementKind = iota
	// Order is no value but the order of the elements of a list, whose elements are
	// matched by key. It is the last element of its path.
	Order
	// Item is an element of a list by its position: New, or Old if it was removed.
	Item
	// Keyed is an element of a list by its Keys.
	Keyed
)

// Element is one step of a path.
type Element struct {
	Kind ElementKind
	Name string
	// Keys are the keys of a Keyed element; of Order, the names by which the list is
	// matched, without values. None for the order of a set.
	Keys []Key
	// Old and New are the positions of Item and Keyed in the old and the new list, -1
	// where the element is not there.
	Old, New int
	// Any says of a Field or an Item of a pattern that it stands for all of them.
	Any bool
}

// Key is one key of a list element, with its value: a string, a number or a bool.
type Key struct {
	Name  string
	Value any
}

// String returns the path as people write it. Elements of lists and names that are no
// identifiers are in brackets; what could be read in two ways there is quoted:
//
//	spec.ports[port=80,protocol=TCP].targetPort
//	metadata.annotations[example.com/owner]
//	data["2"]
//	spec.args[2]
//	spec.containers[order]
func (p Path) String() string {
	var b strings.Builder
	for i, e := range p {
		e.write(&b, i == 0)
	}
	return b.String()
}

func (e Element) write(b *strings.Builder, first bool) {
	switch e.Kind {
	case Field:
		if identifier(e.Name) {
			if !first {
				b.WriteByte('.')
			}
			b.WriteString(e.Name)
			return
		}
		b.WriteByte('[')
		writeBare(b, e.Name)
	case Order:
		b.WriteString("[" + orderName)
	case Item:
		b.WriteString("[" + strconv.Itoa(e.position()))
	case Keyed:
		b.WriteByte('[')
		writeKeys(b, e.Keys)
	}
	b.WriteByte(']')
}

// orderName stands in brackets for the order of a list.
const orderName = "order"

func (e Element) position() int {
	if e.New >= 0 {
		return e.New
	}
	return e.Old
}

func writeKeys(b *strings.Builder, keys []Key) {
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		writeBare(b, k.Name)
		b.WriteByte('=')
		writeKeyValue(b, k.Value)
	}
}

// writeKeyValue writes the value of a key. A string that looks like another value is
// quoted.
func writeKeyValue(b *strings.Builder, v any) {
	switch v, _ := identity(v); v := v.(type) {
	case string:
		writeBare(b, v)
	case float64:
		b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprint(b, v)
	}
}

// writeBare writes text between brackets, quoted if it could be read in another way.
func writeBare(b *strings.Builder, s string) {
	if bare(s) {
		b.WriteString(s)
		return
	}
	b.WriteString(strconv.Quote(s))
}

func bare(s string) bool {
	switch s {
	case "", "*", "true", "false", "null", orderName:
		return false
	}
	for _, r := range s {
		if !strconv.IsPrint(r) || strings.ContainsRune(`[]="\, `, r) || r == '\uFFFD' {
			return false
		}
	}
	// Only what begins like a number can be one; the names of numbers that ParseFloat
	// knows (inf, nan) are names here.
	if c := s[0]; c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' {
		_, err := strconv.ParseFloat(s, 64)
		return err != nil
	}
	return true
}

// identifier reports whether a name needs no brackets.
func identifier(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == '$':
		case i > 0 && (c >= '0' && c <= '9' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// Compare orders paths: element by element, a path before those below it, positions and
// keys that are numbers by their value.
func (p Path) Compare(q Path) int {
	for i := range min(len(p), len(q)) {
		if c := p[i].compare(q[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(p), len(q))
}

func (e Element) compare(o Element) int {
	if e.Kind != o.Kind {
		return cmp.Compare(e.Kind, o.Kind)
	}
	switch e.Kind {
	case Field:
		return strings.Compare(e.Name, o.Name)
	case Item:
		return cmp.Compare(e.position(), o.position())
	case Keyed:
		return slices.CompareFunc(e.Keys, o.Keys, compareKeys)
	case Order:
	}
	return 0
}

func compareKeys(a, b Key) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	x, _ := identity(a.Value)
	y, _ := identity(b.Value)
	switch x := x.(type) {
	case string:
		if y, ok := y.(string); ok {
			return strings.Compare(x, y)
		}
	case int64:
		switch y := y.(type) {
		case int64:
			return cmp.Compare(x, y)
		case float64:
			return cmp.Compare(float64(x), y)
		}
	case float64:
		switch y := y.(type) {
		case int64:
			return cmp.Compare(x, float64(y))
		case float64:
			return cmp.Compare(x, y)
		}
	}
	var l, r strings.Builder // of different types
	writeKeyValue(&l, x)
	writeKeyValue(&r, y)
	return strings.Compare(l.String(), r.String())
}
