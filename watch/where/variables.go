// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package where

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/setpoint-io/setpoint/watch/event"
)

// variables has the values of the names in a condition, for one evaluation. It makes only the
// values that the condition reads.
type variables struct {
	e    *event.Event
	made map[string]any
}

var _ cel.Activation = (*variables)(nil)

// ResolveName returns the value of a variable.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "event":
		if v.made == nil {
			v.made = v.event()
		}
		return v.made, true
	case "old":
		return orNull(v.e.Old), true
	case "new":
		return orNull(v.e.New), true
	case "object":
		return orNull(v.e.Object()), true
	}
	return nil, false
}

// Parent returns nil: there are no other variables.
func (v *variables) Parent() cel.Activation { return nil }

func orNull(o map[string]any) any {
	if o == nil {
		return types.NullValue
	}
	return o
}

// event returns the event as shape describes it.
func (v *variables) event() map[string]any {
	e := v.e
	classes := make([]string, len(e.Classes))
	for i, c := range e.Classes {
		classes[i] = string(c)
	}
	fields := make([]any, len(e.Fields))
	for i, f := range e.Fields {
		fields[i] = map[string]any{
			"path": f.Path, "op": string(f.Op), "from": f.From, "to": f.To, "class": string(f.Class), "hidden": f.Hidden,
		}
	}
	authors := make([]any, len(e.Authors))
	for i, a := range e.Authors {
		authors[i] = map[string]any{
			"manager": a.Manager, "operation": a.Operation, "subresource": a.Subresource, "time": a.Time,
		}
	}
	troubles := make([]any, len(e.Trouble))
	for i, t := range e.Trouble {
		troubles[i] = map[string]any{
			"about": t.About, "reason": t.Reason, "message": t.Message,
			"exitCode": t.ExitCode, "restarts": t.Restarts, "since": t.Since,
		}
	}
	return map[string]any{
		"id": e.ID, "time": e.Time, "verb": string(e.Verb),
		"apiVersion": e.Kind.APIVersion(), "group": e.Kind.Group, "kind": e.Kind.Kind, "resource": e.Kind.Resource,
		"namespaced": e.Kind.Namespaced, "namespace": e.Key.Namespace, "name": e.Key.Name,
		"uid": string(e.UID), "resourceVersion": e.Version,
		"classes": classes, "fields": fields, "authors": authors, "trouble": troubles,
		"missed": e.Missed, "stale": e.Stale, "initial": e.Verb == event.Existing,
		"merged": int64(e.Merged), "since": e.Since, "summary": e.Summary,
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
