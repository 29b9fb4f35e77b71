// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// shapes are the fields that tell the elements of a list apart where no schema says so,
// the best first.
var shapes = []string{"name", "key", "type", "id"}

// matchable is a list whose elements have identities.
type matchable struct {
	items []any
	ids   []any
	at    map[any]int
	keys  []string // nil for a set
}

// matchables returns both lists with the identities of their elements. A set has its elements
// as identities. Other lists have keys, those of the schema or those that their shape offers.
func matchables(from, to []any, n *node) (a, b matchable, ok bool) {
	if n.isSet() {
		if a, b, ok = identified(from, to, nil, identity); ok {
			return a, b, true
		}
	}
	if keys := n.listKeys(); keys != nil {
		return identified(from, to, keys, func(v any) (any, bool) { return keyIdentity(v, keys) })
	}
	for _, field := range shapes {
		text := func(v any) (any, bool) {
			m, _ := v.(map[string]any)
			s, _ := m[field].(string)
			return s, s != ""
		}
		if a, b, ok = identified(from, to, []string{field}, text); ok {
			return a, b, true
		}
	}
	return a, b, false
}

func identified(from, to []any, keys []string, identify func(any) (any, bool)) (a, b matchable, ok bool) {
	if a, ok = withIdentities(from, keys, identify); !ok {
		return a, b, false
	}
	b, ok = withIdentities(to, keys, identify)
	return a, b, ok
}

// withIdentities fails if an element has no identity, or if two elements have the same.
func withIdentities(items []any, keys []string, identify func(any) (any, bool)) (matchable, bool) {
	m := matchable{items: items, ids: make([]any, len(items)), at: make(map[any]int, len(items)), keys: keys}
	for i, item := range items {
		id, ok := identify(item)
		if _, twice := m.at[id]; !ok || twice {
			return m, false
		}
		m.ids[i], m.at[id] = id, i
	}
	return m, true
}

// keyIdentity returns the identity of an element by its keys. There is none if the element is
// no object, has none of the keys, or one that is null or no scalar.
func keyIdentity(item any, keys []string) (any, bool) {
	fields, _ := item.(map[string]any)
	if len(keys) == 1 {
		id, ok := identity(fields[keys[0]])
		return id, ok && id != nil
	}
	// An optional key, such as a protocol, may be absent. Then it is no part of the
	// identity, which differs from any value that it could have.
	values := keyValues(fields, keys)
	for _, k := range values {
		if id, ok := identity(k.Value); !ok || id == nil {
			return nil, false
		}
	}
	var b strings.Builder
	writeKeys(&b, values)
	return b.String(), len(values) > 0
}

func keyValues(item any, keys []string) []Key {
	fields, _ := item.(map[string]any)
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
	return Element{Kind: Keyed, Keys: keyValues(m.items[i], m.keys), Old: oldAt, New: newAt}
}

// label returns what stands for the i-th element in a difference of the order: the value of
// its key, the text of its keys if there are several, or the element of a set.
func (m *matchable) label(i int) any {
	if len(m.keys) == 1 {
		return keyValues(m.items[i], m.keys)[0].Value
	}
	return m.ids[i]
}

// matched compares two lists whose elements have identities.
func (c *comparison) matched(from, to matchable, n *node) {
	for i, id := range from.ids {
		if _, ok := to.at[id]; !ok {
			c.addAt(from.element(i, i, -1), event.Remove, from.items[i], nil)
		}
	}
	last, moved := -1, false
	for j, id := range to.ids {
		i, ok := from.at[id]
		if !ok {
			c.addAt(to.element(j, -1, j), event.Add, nil, to.items[j])
			continue
		}
		moved = moved || i < last
		last = i
		if !Equal(from.items[i], to.items[j]) {
			c.below(to.element(j, i, j), from.items[i], to.items[j], n.item())
		}
	}
	if moved {
		e := Element{Kind: Order, Old: -1, New: -1}
		for _, k := range to.keys {
			e.Keys = append(e.Keys, Key{Name: k})
		}
		c.addAt(e, event.Replace, common(from, to), common(to, from))
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
