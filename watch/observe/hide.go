// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

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
func (h *hiding) object(tree map[string]any, ps []pattern) map[string]any {
	if tree == nil || len(ps) == 0 {
		return tree
	}
	hidden, ok := h.fields(tree, ps).(map[string]any)
	if !ok { // no pattern is empty or about elements at the root
		return map[string]any{}
	}
	return hidden
}

// value returns a value with everything hidden that a pattern leads to. Where a value is
// not of the type that a pattern expects, all of it is hidden.
func (h *hiding) value(v any, ps []pattern) any {
	if len(ps) == 0 || v == nil {
		return v
	}
	for _, p := range ps {
		if len(p) == 0 {
			return h.tag(v)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return h.fields(v, ps)
	case []any:
		return h.elements(v, ps)
	}
	return h.tag(v)
}

func (h *hiding) fields(m map[string]any, ps []pattern) any {
	var names []string
	for _, p := range ps {
		switch p[0].kind {
		case element, keyed:
			return h.tag(m)
		case each:
			names = slices.Collect(maps.Keys(m))
		case named:
			if _, ok := m[p[0].name]; ok {
				names = append(names, p[0].name)
			}
		}
	}
	out := m
	copied := false
	done := make(map[string]bool, len(names))
	for _, name := range names {
		if done[name] {
			continue
		}
		done[name] = true
		var below []pattern
		for _, p := range ps {
			if p[0].kind == each || p[0].name == name {
				below = append(below, p[1:])
			}
		}
		v := h.below(name, m[name], below)
		if !copied {
			out, copied = maps.Clone(m), true
		}
		out[name] = v
	}
	return out
}

func (h *hiding) elements(l []any, ps []pattern) any {
	for _, p := range ps {
		if p[0].kind == named || p[0].kind == each {
			return h.tag(l)
		}
	}
	out := l
	copied := false
	for i, v := range l {
		var below []pattern
		for _, p := range ps {
			if p[0].kind == element || leads(p[0], v) {
				below = append(below, p[1:])
			}
		}
		if len(below) == 0 {
			continue
		}
		if !copied {
			out, copied = slices.Clone(l), true
		}
		out[i] = h.below(place(v, i), v, below)
	}
	return out
}

// leads reports whether a step with a key leads to an element. It leads to whatever has no
// keys: that is not what the rule expects.
func leads(s step, v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return true
	}
	switch v := m[s.name].(type) {
	case string:
		return v == s.value
	case int64:
		return strconv.FormatInt(v, 10) == s.value
	case bool:
		return strconv.FormatBool(v) == s.value
	case nil:
		return false
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

func (h *hiding) below(name string, v any, ps []pattern) any {
	n := len(h.at)
	h.at = binary.AppendUvarint(h.at, uint64(len(name)))
	h.at = append(h.at, name...)
	v = h.value(v, ps)
	h.at = h.at[:n]
	return v
}

// tag returns what is shown in place of a value.
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

// hiddenOrder is shown for an order of elements of which something is hidden.
const hiddenOrder = "(hidden)"

// pair is one object before and after.
type pair struct{ old, new map[string]any }

// shown returns the field of a difference between real trees as it may be shown: all that
// it says is looked up in the trees that have nothing to hide. A difference below
// something that is hidden as a whole is told as one of that.
func shown(d diff.Difference, full, safe pair) event.Field {
	path := make(diff.Path, 0, len(d.Path))
	var from, to any = safe.old, safe.new
	hidden := false
	for i, e := range d.Path {
		if i > 0 && (!container(from) || !container(to)) {
			return event.Field{Path: path.String(), Op: event.Replace, From: from, To: to, Hidden: true}
		}
		if e.Kind == diff.Order {
			return shownOrder(d, append(path, e), full, from, to)
		}
		from, to = into(from, e, false), into(to, e, true)
		if e.Kind == diff.Keyed {
			element := to
			if e.New < 0 {
				element = from
			}
			var changed bool
			e, changed = relabelled(e, element)
			hidden = hidden || changed
		}
		path = append(path, e)
	}
	f := event.Field{Path: path.String(), Op: d.Op, From: from, To: to}
	switch d.Op {
	case event.Add:
		f.From = nil
		hidden = hidden || !diff.Equal(to, d.To)
	case event.Remove:
		f.To = nil
		hidden = hidden || !diff.Equal(from, d.From)
	case event.Replace:
		hidden = hidden || !diff.Equal(from, d.From) || !diff.Equal(to, d.To)
	}
	f.Hidden = hidden
	return f
}

// shownOrder is a field about the order of a list: it names elements by their keys, and
// those may be hidden.
func shownOrder(d diff.Difference, path diff.Path, full pair, from, to any) event.Field {
	f := event.Field{Path: path.String(), Op: d.Op, From: d.From, To: d.To}
	var realFrom, realTo any = full.old, full.new
	for _, e := range d.Path[:len(d.Path)-1] {
		realFrom, realTo = into(realFrom, e, false), into(realTo, e, true)
	}
	if !diff.Equal(realFrom, from) || !diff.Equal(realTo, to) {
		f.From, f.To, f.Hidden = hiddenOrder, hiddenOrder, true
	}
	return f
}

// relabelled returns the element of a path with its keys as they may be shown, and whether
// they are others.
func relabelled(e diff.Element, element any) (diff.Element, bool) {
	m, ok := element.(map[string]any)
	if !ok {
		return diff.Element{Kind: diff.Item, Old: e.Old, New: e.New}, true
	}
	changed := false
	keys := make([]diff.Key, len(e.Keys))
	for i, k := range e.Keys {
		keys[i] = diff.Key{Name: k.Name, Value: m[k.Name]}
		changed = changed || !diff.Equal(k.Value, m[k.Name])
	}
	e.Keys = keys
	return e, changed
}

func container(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// into follows one element of a path in the old or the new tree. What is not there is nil.
func into(v any, e diff.Element, isNew bool) any {
	switch v := v.(type) {
	case map[string]any:
		return v[e.Name]
	case []any:
		i := e.Old
		if isNew {
			i = e.New
		}
		if i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
