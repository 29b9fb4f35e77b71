// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"slices"

	"github.com/setpoint-io/setpoint/internal/managedfields"
	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// entry is one entry of managedFields.
type entry struct {
	event.Author
	apiVersion string
	managed    managedfields.Entry
}

// entries reads the managedFields of an object.
func entries(object map[string]any) []entry {
	var out []entry
	for _, m := range managedfields.Of(object) {
		out = append(out, entry{
			Author:     event.Author{Manager: m.Manager, Operation: m.Operation, Subresource: m.Subresource, Time: m.Time}, // no time is the oldest
			apiVersion: m.APIVersion, managed: m,
		})
	}
	return out
}

// authors returns the managers that may have made the change that led to new: those with the
// newest time. Times of a server are whole seconds, so there may be several. Then the managers
// are those whose entry is not as it was in the old state, and of these those whose fields hold
// the most of what changed. Old is nil if the state before is not known or not the one just
// before.
//
// A server notes the time when a manager sets a field. A write of the scale is an exception:
// its entry has no time, and counts where no other entry explains the change. A manager that
// only removes fields leaves no entry, and neither does the binding of a Pod. If no entry moved
// and none owns what changed, there is no author.
// Source: k8s.io/apimachinery/pkg/util/managedfields, ScaleHandler.
func authors(old, new map[string]any, changed []diff.Difference) []event.Author { //nolint:predeclared // old and new are the words
	all := entries(new)
	if len(all) == 0 {
		return nil
	}
	newest := slices.MaxFunc(all, func(a, b entry) int { return a.Time.Compare(b.Time) }).Time
	candidates := filter(all, func(e entry) bool { return e.Time.Equal(newest) })
	if old != nil {
		before := entries(old)
		if moved := filter(candidates, func(e entry) bool { return !e.isIn(before) }); len(moved) > 0 {
			candidates = moved
		} else if candidates = owners(candidates, changed); len(candidates) == 0 {
			candidates = owners(filter(all, func(e entry) bool { return e.Time.IsZero() }), changed)
		}
	} else if !newest.IsZero() { // an entry without a time may be newer than all others
		candidates = append(candidates, filter(all, func(e entry) bool { return e.Time.IsZero() })...)
	}
	if len(candidates) > 1 {
		if owning := owners(candidates, changed); len(owning) > 0 {
			candidates = owning
		}
	}
	var out []event.Author
	for _, e := range candidates {
		if !slices.Contains(out, e.Author) {
			out = append(out, e.Author)
		}
	}
	return out
}

func filter(es []entry, keep func(entry) bool) []entry {
	var out []entry
	for _, e := range es {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}

// isIn reports whether there was an entry of the same manager with the same time.
func (e entry) isIn(before []entry) bool {
	return slices.ContainsFunc(before, func(b entry) bool {
		return e.Manager == b.Manager && e.Operation == b.Operation && e.Subresource == b.Subresource &&
			e.apiVersion == b.apiVersion && e.Time.Equal(b.Time)
	})
}

// owners returns the entries that hold the most of what was added or replaced, if any.
func owners(es []entry, changed []diff.Difference) []entry {
	var out []entry
	most := 1
	for _, e := range es {
		count := 0
		fields := e.managed.FieldSet()
		for _, d := range changed {
			if d.Op != event.Remove && owns(fields, d) {
				count++
			}
		}
		if count > most {
			most, out = count, nil
		}
		if count == most {
			out = append(out, e)
		}
	}
	return out
}

// owns reports whether a fieldsV1 holds the path of a difference. In it, f: is before the
// name of a field, k: before the keys of an element, sorted by name, and v: before an element
// of a set, both as JSON. A set without entries holds all that is below it.
// Source: https://github.com/kubernetes-sigs/structured-merge-diff, fieldpath/serialize-pe.go.
func owns(fields map[string]any, d diff.Difference) bool {
	if len(fields) == 0 {
		return false
	}
	for i, e := range d.Path {
		if i > 0 && len(fields) == 0 {
			return true
		}
		var name string
		switch e.Kind {
		case diff.Field:
			name = "f:" + e.Name
		case diff.Keyed:
			keys := make(map[string]any, len(e.Keys))
			for _, k := range e.Keys {
				keys[k.Name] = k.Value
			}
			name = "k:" + encoded(keys)
		case diff.Item:
			if i < len(d.Path)-1 {
				return false // only scalars are owned by their value
			}
			name = "v:" + encoded(d.To)
		case diff.Order:
			return len(fields) > 0
		}
		below, found := fields[name]
		if !found {
			return false
		}
		fields, _ = below.(map[string]any)
	}
	return true
}

// encoded returns a value as JSON; nothing for one that JSON does not have.
func encoded(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}
