// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// shapes are the fields that tell the elements of a list apart where no schema says so,
// the best first.
var shapes = [][]string{{"name"}, {"key"}, {"type"}, {"id"}}

// matchable is a list whose elements are known by identities of their own.
type matchable struct {
	items []any
	ids   []any
	at    map[any]int
	keys  []string // nil for a set
}

// keyed matches both lists by the keys of the schema, or, where it has none, by those that
// the shape of the lists offers.
func keyed(from, to []any, n *node) (a, b matchable, ok bool) {
	if keys := n.listKeys(); keys != nil {
		return bothKeyedBy(from, to, keys)
	}
	for _, keys := range shapes {
		if !texts(from, keys[0]) || !texts(to, keys[0]) {
			continue
		}
		if a, b, ok = bothKeyedBy(from, to, keys); ok {
			return a, b, true
		}
	}
	return a, b, false
}

func bothKeyedBy(from, to []any, keys []string) (a, b matchable, ok bool) {
	if a, ok = keyedBy(from, keys); !ok {
		return a, b, false
	}
	b, ok = keyedBy(to, keys)
	return a, b, ok
}

// texts reports whether all elements are objects with a string in a field.
func texts(items []any, field string) bool {
	for _, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return false
		}
		if s, ok := m[field].(string); !ok || s == "" {
			return false
		}
	}
	return true
}

// keyedBy matches elements by keys. It fails if an element is no object, has none of the
// keys or one that is no scalar, or if two elements have the same.
func keyedBy(items []any, keys []string) (matchable, bool) {
	m := matchable{items: items, ids: make([]any, len(items)), at: make(map[any]int, len(items)), keys: keys}
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return m, false
		}
		id, ok := keyIdentity(fields, keys)
		if !ok || !m.note(i, id) {
			return m, false
		}
	}
	return m, true
}

// setOf matches elements by themselves. It fails if one is no scalar or is there twice.
func setOf(items []any) (matchable, bool) {
	m := matchable{items: items, ids: make([]any, len(items)), at: make(map[any]int, len(items))}
	for i, item := range items {
		id, ok := identity(item)
		if !ok || !m.note(i, id) {
			return m, false
		}
	}
	return m, true
}

func (m *matchable) note(i int, id any) bool {
	if _, twice := m.at[id]; twice {
		return false
	}
	m.ids[i], m.at[id] = id, i
	return true
}

func keyIdentity(fields map[string]any, keys []string) (any, bool) {
	if len(keys) == 1 {
		v, ok := fields[keys[0]]
		if !ok || v == nil {
			return nil, false
		}
		return identity(v)
	}
	// An optional key, such as a protocol, may be absent. Then it is no part of the
	// identity, which differs from any value that it could have.
	var b strings.Builder
	for i, k := range keyValues(fields, keys) {
		if _, ok := identity(k.Value); !ok || k.Value == nil {
			return nil, false
		}
		if i > 0 {
			b.WriteByte(',')
		}
		writeBare(&b, k.Name)
		b.WriteByte('=')
		writeKeyValue(&b, k.Value)
	}
	return b.String(), b.Len() > 0
}

func keyValues(fields map[string]any, keys []string) []Key {
	values := make([]Key, 0, len(keys))
	for _, k := range keys {
		if v, ok := fields[k]; ok {
			values = append(values, Key{Name: k, Value: v})
		}
	}
	return values
}

// element returns the path element of the i-th element.
func (m *matchable) element(i, oldAt, newAt int) Element {
	if m.keys == nil {
		return Element{Kind: Item, Old: oldAt, New: newAt}
	}
	fields, _ := m.items[i].(map[string]any)
	return Element{Kind: Keyed, Keys: keyValues(fields, m.keys), Old: oldAt, New: newAt}
}

// label returns what stands for the i-th element where the order is told: the value of
// its key, all of its keys if there are several, or the element of a set.
func (m *matchable) label(i int) any {
	if m.keys == nil {
		return m.items[i]
	}
	fields, _ := m.items[i].(map[string]any)
	if len(m.keys) == 1 {
		return fields[m.keys[0]]
	}
	return m.ids[i]
}

// matched compares two lists whose elements have identities.
func (c *comparison) matched(from, to matchable, n *node) {
	for i, id := range from.ids {
		if _, ok := to.at[id]; !ok {
			c.tellAt(from.element(i, i, -1), event.Remove, from.items[i], nil)
		}
	}
	last, moved := -1, false
	for j, id := range to.ids {
		i, ok := from.at[id]
		if !ok {
			c.tellAt(to.element(j, -1, j), event.Add, nil, to.items[j])
			continue
		}
		moved = moved || i < last
		last = i
		if Equal(from.items[i], to.items[j]) {
			continue
		}
		c.push(to.element(j, i, j))
		c.values(from.items[i], to.items[j], n.item())
		c.pop()
	}
	if moved {
		e := Element{Kind: Order, Old: -1, New: -1}
		for _, k := range to.keys {
			e.Keys = append(e.Keys, Key{Name: k})
		}
		c.tellAt(e, event.Replace, common(from, to), common(to, from))
	}
}

// common returns the labels of the elements that are in both, in the order of the first.
func common(in, and matchable) []any {
	var labels []any
	for i, id := range in.ids {
		if _, ok := and.at[id]; ok {
			labels = append(labels, in.label(i))
		}
	}
	return labels
}
