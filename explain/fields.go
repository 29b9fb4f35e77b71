// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/managedfields"
)

// mostPaths is how many fields of one owner are named.
const mostPaths = 6

// owners returns the field managers of an object with the first fields that they own, the newest first.
func owners(state map[string]any) []FieldOwner { return ownersOf(state, mostPaths) }

// ownersOf returns the field managers of an object, each with some of the fields that it owns, the newest first.
func ownersOf(state map[string]any, most int) (all []FieldOwner) {
	for _, m := range managedfields.Of(state) {
		o := FieldOwner{Manager: m.Manager, Operation: m.Operation, Subresource: m.Subresource}
		if !m.Time.IsZero() {
			o.At = &m.Time
		}
		paths := pathsOf(m.FieldSet(), "", 0, nil)
		o.Fields = paths[:min(len(paths), most)]
		o.More = len(paths) - len(o.Fields)
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b FieldOwner) int { return timeOf(b.At).Compare(timeOf(a.At)) })
	return all
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// depthBelow is how many names a path has at most: "spec.template.spec" says enough of a template, and
// "status.conditions[Ready]" of a condition.
func depthBelow(path string) int {
	if strings.HasPrefix(path, "spec") {
		return 3
	}
	return 2
}

// pathsOf appends the paths of a fieldsV1, shortened and sorted.
// Source of the format: sigs.k8s.io/structured-merge-diff, fieldpath/serialize.go.
func pathsOf(fields map[string]any, prefix string, names int, all []string) []string {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name, isField := strings.CutPrefix(key, "f:")
		switch {
		case key == ".":
			continue
		case !isField:
			if name = elementOf(key); name == "" {
				continue
			}
		case prefix != "":
			name = "." + name
		}
		path, now := prefix+name, names
		if isField {
			now++
		}
		below, _ := fields[key].(map[string]any)
		deeper := now < depthBelow(path) || isField && hasElements(below)
		if len(below) == 0 || !deeper {
			all = append(all, path)
			continue
		}
		all = pathsOf(below, path, now, all)
	}
	return slices.Compact(all)
}

// hasElements reports whether a field is a list whose elements have owners of their own.
func hasElements(fields map[string]any) bool {
	for key := range fields {
		if strings.HasPrefix(key, "k:") {
			return true
		}
	}
	return false
}

// elementOf returns the name of an element of a list: the first key of "k:", or the value of "v:".
func elementOf(key string) string {
	kind, text, _ := strings.Cut(key, ":")
	switch kind {
	case "k":
		var keys map[string]any
		if json.Unmarshal([]byte(text), &keys) != nil {
			return ""
		}
		for _, name := range []string{"name", "type", "key", "uid", "ip", "containerPort", "port"} {
			if value, known := keys[name]; known {
				encoded, _ := json.Marshal(value) // of a plain value
				return "[" + strings.Trim(string(encoded), `"`) + "]"
			}
		}
	case "v":
		return "[" + strings.Trim(text, `"`) + "]"
	}
	return ""
}

// writerOf returns the field manager that probably made a change of an object at a time, with the fields that it owns:
// the newest one by then that did not write the status. Times of managedFields are in whole seconds. Of several in one second
// it is the one with the fewest fields: an object that is created has more fields than an edit. Writers of the status count for
// Pods, whose spec hardly changes.
func writerOf(kind string, state map[string]any, at time.Time) (FieldOwner, bool) {
	found := writersOf(state, kind == "Pod", func(written time.Time) bool { return !written.After(at.Add(time.Second)) })
	if len(found) == 0 {
		return FieldOwner{}, false
	}
	return slices.MaxFunc(found, func(a, b FieldOwner) int { return cmp.Or(a.At.Compare(*b.At), cmp.Compare(b.size(), a.size())) }), true
}

// firstWriterOf returns the field manager that probably created an object: the first that wrote, and of several in that second the
// one with the most fields. The server takes the time of the fields before it calls admission webhooks and the time of the creation
// after that, so a whole request can be between them. Source: k8s.io/apiserver/pkg/endpoints/handlers, createHandler.
func firstWriterOf(state map[string]any, created time.Time) (FieldOwner, bool) {
	found := writersOf(state, false, func(written time.Time) bool {
		return !written.After(created.Add(time.Second)) && created.Sub(written) <= longestRequest
	})
	if len(found) == 0 {
		return FieldOwner{}, false
	}
	return slices.MinFunc(found, func(a, b FieldOwner) int { return cmp.Or(a.At.Compare(*b.At), cmp.Compare(b.size(), a.size())) }), true
}

// longestRequest is how long a server works on a request by default. Source: --request-timeout of kube-apiserver.
const longestRequest = time.Minute

// writersOf returns the field managers that wrote at certain times: to the object, and also to its subresources if they count.
func writersOf(state map[string]any, subresources bool, at func(time.Time) bool) (found []FieldOwner) {
	for _, o := range owners(state) {
		if o.At != nil && (subresources || o.Subresource == "") && at(*o.At) {
			found = append(found, o)
		}
	}
	return found
}

// size is how many fields an owner has.
func (o *FieldOwner) size() int { return len(o.Fields) + o.More }

// text describes an owner's fields.
func (o *FieldOwner) text() string {
	text := strings.Join(o.Fields[:min(len(o.Fields), mostPaths)], ", ")
	if o.More > 0 || len(o.Fields) > mostPaths {
		text += " and more"
	}
	return cmp.Or(text, "no fields any more")
}
