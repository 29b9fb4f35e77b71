// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// entry is one entry of managedFields.
type entry struct {
	event.Author
	apiVersion string
	fields     map[string]any
}

// entries reads the managedFields of an object; what is not as it should be is passed over.
func entries(object map[string]any) []entry {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	out := make([]entry, 0, len(list))
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		var e entry
		e.Manager, _ = m["manager"].(string)
		e.Operation, _ = m["operation"].(string)
		e.Subresource, _ = m["subresource"].(string)
		e.apiVersion, _ = m["apiVersion"].(string)
		e.fields, _ = m["fieldsV1"].(map[string]any)
		if text, ok := m["time"].(string); ok {
			e.Time, _ = time.Parse(time.RFC3339, text) // no time is the oldest
		}
		out = append(out, e)
	}
	return out
}

// authors returns who may have made the change that led to new: those of the newest time.
// A server's times are whole seconds, so there may be several. Then it is those whose entry
// is not as it was in the old state, and of these those whose fields hold the most of what
// changed. Old is nil if the state before is not known or not the one just before.
//
// A server notes a manager's time when the manager sets a field, but for who writes the
// scale: that entry has no time, so it is asked where no other entry explains the change.
// Who does nothing but take fields away leaves no entry, and who binds a Pod none either: if
// no entry moved and none owns what changed, nobody is named.
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
	} else if !newest.IsZero() { // who has no time may be newer than all others
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
	most := 0
	counts := make([]int, len(es))
	for i, e := range es {
		elements := ownedElements{}
		for _, d := range changed {
			if d.Op != event.Remove && owns(e.fields, d, elements) {
				counts[i]++
			}
		}
		most = max(most, counts[i])
	}
	if most == 0 {
		return nil
	}
	var out []entry
	for i, e := range es {
		if counts[i] == most {
			out = append(out, e)
		}
	}
	return out
}

// owns reports whether a fieldsV1 holds the path of a difference. In it, f: is before the
// name of a field, k: before the keys of an element as JSON, v: before an element of a
// set; a set without entries holds all that is below it.
// Source: https://github.com/kubernetes-sigs/structured-merge-diff, fieldpath/serialize-pe.go.
func owns(fields map[string]any, d diff.Difference, elements ownedElements) bool {
	if len(fields) == 0 {
		return false
	}
	for i, e := range d.Path {
		if i > 0 && len(fields) == 0 {
			return true
		}
		var below any
		found := false
		switch e.Kind {
		case diff.Field:
			below, found = fields["f:"+e.Name]
		case diff.Keyed:
			below, found = elements.of(fields, e.Keys)
		case diff.Item:
			if i == len(d.Path)-1 {
				value, _ := json.Marshal(d.To)
				below, found = fields["v:"+string(value)]
			}
		case diff.Order:
			return len(fields) > 0
		}
		if !found {
			return false
		}
		fields, _ = below.(map[string]any)
	}
	return true
}
