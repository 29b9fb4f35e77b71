// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
)

// spec has words for Nodes, for the Node of a Pod, and for containers.
func (w *wording) spec(path diff.Path, f event.Field) phrase {
	switch {
	case f.Path == "spec.nodeName" && f.Op == event.Add:
		return phrase{"scheduled on " + w.value(f.To), first}
	case f.Path == "spec.unschedulable" && f.To == true:
		return phrase{"cordoned", first}
	case f.Path == "spec.unschedulable":
		return phrase{"uncordoned", first}
	case f.Path == "spec.taints":
		return w.taints(f)
	}
	at := slices.IndexFunc(path, func(e diff.Element) bool {
		return e.Name == "containers" || e.Name == "initContainers" || e.Name == "ephemeralContainers"
	})
	if at < 0 || at+1 == len(path) || path[at+1].Kind == diff.Field {
		return phrase{}
	}
	list := []string{"spec"}
	for _, e := range path[:at+1] {
		list = append(list, e.Name)
	}
	return w.container(w.object.At(list...), path[at+1], path[at+2:], f)
}

// taints has words for the first and the last taints of a Node.
func (w *wording) taints(f event.Field) phrase {
	var each []string
	for _, taint := range (jsontree.Tree{Value: present(f)}).List() {
		text := taint.Text("key")
		if v := taint.Text("value"); v != "" {
			text += "=" + v
		}
		each = append(each, text+":"+taint.Text("effect"))
	}
	if f.Op == event.Replace || len(each) == 0 {
		return phrase{}
	}
	return happened(plural(len(each), "taint")+" "+w.value(strings.Join(each, " ")), f.Op)
}

// container has words for a container of a list, which is that of a Pod or of a template.
func (w *wording) container(list jsontree.Tree, e diff.Element, below diff.Path, f event.Field) phrase {
	if e.Kind == diff.Order {
		return phrase{"order of containers changed", named}
	}
	name := clean(key(e))
	if len(below) == 0 {
		switch f.Op {
		case event.Add:
			return phrase{"container " + name + " added: image " + w.value(jsontree.Tree{Value: f.To}.Text("image")), named}
		case event.Remove:
			return happened("container "+name, f.Op)
		case event.Replace:
		}
		return phrase{}
	}
	switch rest := below[1:]; below[0].Name {
	case "image":
		if w.e.Summary != "" {
			return phrase{w.shortImage(len(list.List()), name, f), named}
		}
		return phrase{w.fromTo("image of "+name, f), named}
	case "env":
		if len(rest) == 0 || rest[0].Kind == diff.Field {
			break
		}
		variable := "env " + clean(key(rest[0])) + " of " + name
		switch {
		case len(rest) == 1 && f.Op != event.Replace:
			return happened(variable, f.Op)
		case rest[len(rest)-1].Name == "value":
			return phrase{w.fromTo(variable, f), named}
		}
	case "resources":
		var names []string
		for _, e := range rest {
			names = append(names, clean(e.Name))
		}
		if len(names) > 0 {
			return phrase{w.fromTo(strings.Join(names, " ")+" of "+name, f), named}
		}
	}
	return phrase{}
}

// shortImage has few words for an image: the line of merged changes has more to say. They are
// "image nginx:1.29 → 1.30" if there is one container, and the image is of the same repository.
func (w *wording) shortImage(containers int, container string, f event.Field) string {
	name := "image of " + container
	if containers == 1 {
		name = "image"
	}
	from, _ := f.From.(string)
	to, _ := f.To.(string)
	at := strings.LastIndex(from, ":") + 1
	if f.Op != event.Replace || f.Hidden || at == 0 || strings.Contains(from[at:], "/") || len(to) <= at || from[:at] != to[:at] {
		return w.fromTo(name, f)
	}
	return name + " " + w.value(from) + " → " + w.value(to[at:])
}

// data has words for what ConfigMaps and Secrets hold.
func (w *wording) data(path diff.Path, f event.Field) phrase {
	if len(path) > 2 {
		return phrase{}
	}
	name := clean(f.Path)
	if len(path) == 2 {
		name = clean(path[0].Name + "." + path[1].Name)
	}
	var text string
	switch from, to := lines(f.From), lines(f.To); {
	case !f.Hidden && from < 2 && to < 2 && f.Op == event.Add:
		return happened(name+"="+w.value(f.To), f.Op)
	case f.Hidden, from < 2 && to < 2:
		text = w.fromTo(name, f)
	case f.Op == event.Add:
		text = name + " added, " + count(to, "line")
	case f.Op == event.Remove:
		text = name + " removed, " + count(from, "line")
	case from == to:
		text = name + " changed, " + count(to, "line")
	default:
		text = fmt.Sprintf("%s changed, %s → %d", name, count(from, "line"), to)
	}
	return phrase{text, named}
}

// lines returns how many lines a text has; anything else has none.
func lines(v any) int {
	s, _ := v.(string)
	if s == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
}
