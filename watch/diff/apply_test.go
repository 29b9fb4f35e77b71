// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// apply makes the new state from the old one and the differences, by nothing but what they
// say. That it can is what shows that no difference is lost.
func apply(old map[string]any, found []Difference) map[string]any {
	return applied(old, found, 0).(map[string]any)
}

func applied(value any, found []Difference, depth int) any {
	if len(found) == 0 {
		return value
	}
	if len(found) == 1 && len(found[0].Path) == depth {
		return found[0].To
	}
	switch v := value.(type) {
	case map[string]any:
		return appliedMap(v, found, depth)
	case []any:
		return appliedList(v, found, depth)
	}
	panic(fmt.Sprintf("%v leads below a %T", found[0].Path, value))
}

func appliedMap(v map[string]any, found []Difference, depth int) map[string]any {
	out := maps.Clone(v)
	if out == nil {
		out = map[string]any{}
	}
	below := map[string][]Difference{}
	for _, d := range found {
		name := d.Path[depth].Name
		switch {
		case len(d.Path) == depth+1 && d.Op == event.Remove:
			delete(out, name)
		case len(d.Path) == depth+1:
			out[name] = d.To
		default:
			below[name] = append(below[name], d)
		}
	}
	for name, ds := range below {
		out[name] = applied(out[name], ds, depth+1)
	}
	return out
}

func appliedList(v []any, found []Difference, depth int) []any {
	gone := map[int]bool{}
	var adds []Difference
	var ordered []any
	below := map[int][]Difference{}
	var keys []string
	for _, d := range found {
		e := d.Path[depth]
		direct := len(d.Path) == depth+1
		switch {
		case direct && e.Kind == Order:
			ordered = d.To.([]any)
			for _, k := range e.Keys {
				keys = append(keys, k.Name)
			}
		case direct && d.Op == event.Remove:
			gone[e.Old] = true
		case direct && d.Op == event.Add:
			adds = append(adds, d)
		default:
			below[e.New] = append(below[e.New], d)
		}
	}
	var out []any
	for i, item := range v {
		if !gone[i] {
			out = append(out, item)
		}
	}
	if ordered != nil {
		out = reordered(out, ordered, keys)
	}
	slices.SortFunc(adds, func(a, b Difference) int { return cmp.Compare(a.Path[depth].New, b.Path[depth].New) })
	for _, d := range adds {
		out = slices.Insert(out, d.Path[depth].New, d.To)
	}
	for at, ds := range below {
		if len(ds) == 1 && len(ds[0].Path) == depth+1 {
			out[at] = ds[0].To
		} else {
			out[at] = applied(out[at], ds, depth+1)
		}
	}
	if out == nil {
		out = []any{}
	}
	return out
}

func reordered(items, labels []any, keys []string) []any {
	m, ok := withIdentities(items, keys, func(v any) (any, bool) {
		if keys == nil {
			return identity(v)
		}
		return keyIdentity(v, keys)
	})
	if !ok {
		panic("the order of a list without keys")
	}
	var out []any
	for _, l := range labels {
		for i := range items {
			if Equal(m.label(i), l) {
				out = append(out, items[i])
			}
		}
	}
	return out
}

// lines are the differences as a test writes them.
func lines(found []Difference) string {
	var b strings.Builder
	for _, d := range found {
		fmt.Fprintf(&b, "%s %s", d.Op, d.Path)
		if d.Op != event.Add {
			fmt.Fprintf(&b, " %v", d.From)
		}
		if d.Op == event.Replace {
			b.WriteString(" →")
		}
		if d.Op != event.Remove {
			fmt.Fprintf(&b, " %v", d.To)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
