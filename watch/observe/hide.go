// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// hiding replaces the hidden values of one object. It copies what it changes.
type hiding struct {
	key []byte
	uid string
	at  []byte // where it is, for the tags
}

// object returns the object with everything hidden that a pattern leads to.
func (h *hiding) object(tree map[string]any, ps []diff.Path) map[string]any {
	hidden, ok := h.value(tree, ps).(map[string]any)
	if !ok { // no pattern is empty or begins with an element
		return map[string]any{}
	}
	return hidden
}

// value returns a value with everything hidden that a pattern leads to. Where a value is
// not of the type that a pattern expects, all of it is hidden.
func (h *hiding) value(v any, ps []diff.Path) any {
	if len(ps) == 0 || v == nil {
		return v
	}
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	fits := func(p diff.Path) bool {
		return len(p) > 0 && (isObject && p[0].Kind == diff.Field || isList && p[0].Kind != diff.Field)
	}
	for _, p := range ps {
		if !fits(p) {
			return h.tag(v)
		}
	}
	if isObject {
		return h.fields(object, ps)
	}
	return h.elements(list, ps)
}

func (h *hiding) fields(m map[string]any, ps []diff.Path) map[string]any {
	names := map[string]bool{}
	for _, p := range ps {
		if p[0].Any {
			for name := range m {
				names[name] = true
			}
		} else if _, ok := m[p[0].Name]; ok {
			names[p[0].Name] = true
		}
	}
	if len(names) == 0 {
		return m
	}
	out := maps.Clone(m)
	for name := range names {
		out[name] = h.below(name, m[name], ps, func(e diff.Element) bool { return e.Any || e.Name == name })
	}
	return out
}

func (h *hiding) elements(l []any, ps []diff.Path) []any {
	out := slices.Clone(l)
	for i, v := range l {
		out[i] = h.below(place(v, i), v, ps, func(e diff.Element) bool { return e.Any || leads(e, v) })
	}
	return out
}

// leads reports whether keys lead to an element. They lead to each element that does not have
// them as a rule expects, so that more is hidden and not less.
func leads(e diff.Element, v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return true
	}
	for _, k := range e.Keys {
		switch v := m[k.Name].(type) {
		case nil:
			return false
		case string, int64, bool:
			if fmt.Sprint(v) != k.Value {
				return false
			}
		}
	}
	return true
}

// place names an element of a list for its tags, which should not change when it moves.
func place(v any, i int) string {
	m, _ := v.(map[string]any)
	for _, key := range [...]string{"name", "key", "type", "id"} {
		if s, ok := m[key].(string); ok {
			return key + "=" + s
		}
	}
	return strconv.Itoa(i)
}

// below hides what the patterns lead to of which the first element is one of v.
func (h *hiding) below(name string, v any, ps []diff.Path, first func(diff.Element) bool) any {
	var rest []diff.Path
	for _, p := range ps {
		if first(p[0]) {
			rest = append(rest, p[1:])
		}
	}
	n := len(h.at)
	h.at = binary.AppendUvarint(h.at, uint64(len(name)))
	h.at = append(h.at, name...)
	v = h.value(v, rest)
	h.at = h.at[:n]
	return v
}

// tag returns the text that replaces a value.
func (h *hiding) tag(v any) string {
	mac := hmac.New(sha256.New, h.key)
	head := binary.AppendUvarint(nil, uint64(len(h.uid)))
	head = append(head, h.uid...)
	head = binary.AppendUvarint(head, uint64(len(h.at)))
	mac.Write(append(head, h.at...))
	var c canonical
	c.value(v, nil)
	mac.Write(c.out)
	return "(hidden " + hex.EncodeToString(mac.Sum(nil)[:3]) + ")"
}

// isTag reports whether a value is a tag of a hidden one.
func isTag(v any) bool {
	text, ok := v.(string)
	return ok && len(text) == len("(hidden 000000)") && strings.HasPrefix(text, "(hidden ") && strings.HasSuffix(text, ")")
}

// hasTag reports whether a value is a tag, or has one in it.
func hasTag(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if hasTag(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasTag)
	}
	return isTag(v)
}

// hiddenOrder stands for the order of elements of which something is hidden.
const hiddenOrder = "(hidden)"

// pair is one object before and after.
type pair struct{ old, new map[string]any }

// sides are the old and the new value at a path. An absent value is nil.
type sides struct{ from, to any }

// below returns the values one element further down.
func (s sides) below(e diff.Element) sides {
	at := func(v any, position int) any {
		switch v := v.(type) {
		case map[string]any:
			return v[e.Name]
		case []any:
			if position >= 0 && position < len(v) {
				return v[position]
			}
		}
		return nil
	}
	return sides{at(s.from, e.Old), at(s.to, e.New)}
}

func (s sides) equal(from, to any) bool { return diff.Equal(s.from, from) && diff.Equal(s.to, to) }

// shown returns the field of a difference between the full trees, with its values from the safe
// ones, in which hidden values are replaced. A difference below a value that is hidden as a whole is
// one of that value.
func shown(d diff.Difference, full, safe pair) event.Field {
	path := make(diff.Path, 0, len(d.Path))
	s := sides{safe.old, safe.new}
	hidden := false
	for i, e := range d.Path {
		switch {
		case i > 0 && (isScalar(s.from) || isScalar(s.to)):
			return event.Field{Path: path.String(), Op: event.Replace, From: s.from, To: s.to, Hidden: true}
		case e.Kind == diff.Order:
			return shownOrder(d, append(path, e), full, s)
		}
		s = s.below(e)
		if e.Kind == diff.Keyed {
			element := s.to
			if e.New < 0 {
				element = s.from
			}
			var changed bool
			e, changed = relabelled(e, element)
			hidden = hidden || changed
		}
		path = append(path, e)
	}
	return event.Field{Path: path.String(), Op: d.Op, From: s.from, To: s.to, Hidden: hidden || !s.equal(d.From, d.To)}
}

// shownOrder returns the field of the order of a list. It names elements by their keys, and keys
// may be hidden.
func shownOrder(d diff.Difference, path diff.Path, full pair, safe sides) event.Field {
	actual := sides{full.old, full.new}
	for _, e := range d.Path[:len(d.Path)-1] {
		actual = actual.below(e)
	}
	f := event.Field{Path: path.String(), Op: d.Op, From: d.From, To: d.To}
	if !actual.equal(safe.from, safe.to) {
		f.From, f.To, f.Hidden = hiddenOrder, hiddenOrder, true
	}
	return f
}

// relabelled returns the element of a path with its keys from the element that is shown, and
// whether they differ.
func relabelled(e diff.Element, element any) (diff.Element, bool) {
	m, ok := element.(map[string]any)
	if !ok {
		return diff.Element{Kind: diff.Item, Old: e.Old, New: e.New}, true
	}
	changed := false
	e.Keys = slices.Clone(e.Keys)
	for i := range e.Keys {
		k := &e.Keys[i]
		changed = changed || !diff.Equal(k.Value, m[k.Name])
		k.Value = m[k.Name]
	}
	return e, changed
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
