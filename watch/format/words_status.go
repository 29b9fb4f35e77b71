// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/watch/diff"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

// counts are fields that are left out where they are 0.
var counts = map[string]bool{
	"status.replicas": true, "status.readyReplicas": true, "status.availableReplicas": true, "status.updatedReplicas": true,
	"status.succeeded": true, "status.failed": true, "status.active": true,
}

// counted puts the 0 where a count was left out.
func counted(f event.Field) event.Field {
	switch {
	case !counts[f.Path] || f.Hidden:
	case f.Op == event.Add:
		f.Op, f.From = event.Replace, int64(0)
	case f.Op == event.Remove:
		f.Op, f.To = event.Replace, int64(0)
	}
	return f
}

// status has words for conditions and for the containers of Pods.
func (w *wording) status(path diff.Path, f event.Field) phrase {
	if len(path) == 0 {
		return phrase{}
	}
	switch path[0].Name {
	case "conditions":
		if len(path) == 1 {
			return w.conditions(f)
		}
		return w.condition(path[1], path[2:], f)
	case "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses":
		return w.containerStatus(path, f)
	}
	return phrase{}
}

// conditions has words for all conditions of an object that had none.
func (w *wording) conditions(f event.Field) phrase {
	if f.Op != event.Add {
		return phrase{}
	}
	var each []phrase
	for _, c := range (jsontree.Tree{Value: f.To}).List() {
		if kind := c.Text("type"); kind != "" {
			each = append(each, phrase{clean(kind) + " " + w.value(c.Text("status")) + w.reason(c), w.rankOf(c)})
		}
	}
	if len(each) == 0 {
		return phrase{}
	}
	slices.SortStableFunc(each, byRank)
	var texts []string
	for _, p := range each {
		texts = append(texts, p.text)
	}
	return phrase{cut(strings.Join(texts, ", "), w.columns), each[0].rank}
}

// rankOf returns how much a condition matters: what is bad comes before Ready, and Ready before the
// others.
func (w *wording) rankOf(condition jsontree.Tree) rank {
	kind := condition.Text("type")
	switch {
	case trouble.IsBad(w.e.Kind, kind, condition.Text("status"), condition.Text("reason")):
		return bad
	case kind == "Ready":
		return named
	}
	return part
}

// condition has words for a condition: its status, with the reason if it is not true. If the
// status did not change, they are the reason, or else the message.
func (w *wording) condition(e diff.Element, below diff.Path, f event.Field) phrase {
	if e.Kind == diff.Field || e.Kind == diff.Order {
		return phrase{}
	}
	kind := key(e)
	name, once := clean(kind), "condition "+kind
	field := ""
	if len(below) > 0 {
		field = below[0].Name
	}
	parent := strings.TrimSuffix(f.Path, "."+field)
	now := w.object.Named("type", kind, "status", "conditions")
	r := w.rankOf(now)
	switch {
	case field == "" && f.Op == event.Add:
		now := jsontree.Tree{Value: f.To}
		return w.once(once, name+" "+w.value(now.Text("status"))+w.reason(now), w.rankOf(now))
	case field == "" && f.Op == event.Remove:
		return happened(name, f.Op)
	case field == "":
		return phrase{}
	case field == "status":
		return w.once(once, w.fromTo(name, f)+w.reason(now), r)
	case field != "reason" && field != "message":
		return phrase{w.fromTo(clean(f.Path), f), noise}
	case w.has(parent+".status") || field == "message" && w.has(parent+".reason"):
		return phrase{rank: silenced}
	case field == "message":
		return w.once(once, name+": "+w.value(f.To), r)
	}
	return w.once(once, w.fromTo(name, f), r)
}

// reason returns the reason of a condition that is not true.
func (w *wording) reason(condition jsontree.Tree) string {
	if reason := condition.Text("reason"); reason != "" && condition.Text("status") != "True" {
		return " (" + w.value(reason) + ")"
	}
	return ""
}

// containerStatus says that a container runs, waits or ended, and how often it was restarted.
func (w *wording) containerStatus(path diff.Path, f event.Field) phrase {
	if len(path) == 1 {
		return w.containerStatuses(f)
	}
	name := key(path[1])
	now := w.object.Named("name", name, "status", path[0].Name)
	switch {
	case len(path) == 2 || path[2].Name == "state":
		if text := w.state(now.At("state")); text != "" {
			return w.once("container "+name, clean(name)+" "+text, rankOfState(now))
		}
	case path[2].Name == "restartCount" && f.Op == event.Replace:
		return phrase{"restarts of " + clean(name) + " " + w.value(f.From) + " → " + w.value(f.To), named}
	}
	return phrase{w.fromTo(clean(f.Path), f), noise}
}

// containerStatuses has words for the first statuses of containers: for those that cannot run.
func (w *wording) containerStatuses(f event.Field) phrase {
	var each []string
	if f.Op == event.Add {
		for _, c := range (jsontree.Tree{Value: f.To}).List() {
			if rankOfState(c) == broken {
				each = append(each, clean(c.Text("name"))+" "+w.state(c.At("state")))
			}
		}
	}
	if len(each) == 0 {
		return phrase{w.fromTo("containers", f), noise}
	}
	return phrase{strings.Join(each, ", "), broken}
}

// rankOfState returns how much the state of a container matters.
func rankOfState(status jsontree.Tree) rank {
	if state, _ := status.At("state").Value.(map[string]any); trouble.IsFailing(state) {
		return broken
	}
	return named
}

func (w *wording) state(state jsontree.Tree) string {
	if ended := state.At("terminated"); ended.Value != nil {
		text := "ended"
		if reason := ended.Text("reason"); reason != "" {
			text += ": " + w.value(reason)
		}
		if code := ended.Number(0, "exitCode"); code != 0 {
			text += ", exit " + w.value(code)
		}
		return text
	}
	if waiting := state.At("waiting"); waiting.Value != nil {
		return "waiting: " + w.value(waiting.Text("reason"))
	}
	if state.At("running").Value != nil {
		return "running"
	}
	return ""
}
