// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// bookkeeping are annotations that the controller of Deployments keeps for itself, beside
// the change that a reader looks for. The revision is one that kubectl rollout shows.
var bookkeeping = map[string]bool{
	"deployment.kubernetes.io/desired-replicas": true,
	"deployment.kubernetes.io/max-replicas":     true,
	"deployment.kubernetes.io/revision-history": true,
}

const revision = "deployment.kubernetes.io/revision"

// deployment has words for the annotations of the Deployment controller.
func (t *teller) deployment(path []step, f event.Field) (phrase, bool) {
	rest, ok := under(path, "metadata", "annotations")
	if ok && len(rest) == 1 {
		switch {
		case rest[0].name == revision:
			return phrase{t.fromTo("revision", f), named}, true
		case bookkeeping[rest[0].name]:
			return phrase{t.fromTo("annotation "+clean(rest[0].name), f), noise}, true
		}
	}
	// The first annotation is told with the map that it came with.
	m, isMap := f.To.(map[string]any)
	if f.Path != "metadata.annotations" || f.Op != event.Add || !isMap || m[revision] == nil {
		return phrase{}, false
	}
	for key := range m {
		if key != revision && !bookkeeping[key] {
			return phrase{}, false
		}
	}
	return phrase{"revision " + t.value(m[revision]), named}, true
}

// scheduled says to which Node a Pod went. Labels that say where the Node is come with it.
func (t *teller) scheduled(path []step, f event.Field) (phrase, bool) {
	if f.Path == "spec.nodeName" && f.Op == event.Add {
		return phrase{"scheduled on " + t.value(f.To), first}, true
	}
	rest, ok := under(path, "metadata", "labels")
	if ok && strings.HasPrefix(rest[0].name, "topology.kubernetes.io/") && t.changed("spec.nodeName") {
		return phrase{t.fromTo("label "+clean(rest[0].name), f), noise}, true
	}
	return phrase{}, false
}

func (t *teller) changed(path string) bool {
	return slices.ContainsFunc(t.e.Fields, func(f event.Field) bool { return f.Path == path })
}

// counts are fields that are left out where they are 0.
var counts = map[string]bool{
	"status.replicas": true, "status.readyReplicas": true, "status.availableReplicas": true, "status.updatedReplicas": true,
	"status.succeeded": true, "status.failed": true, "status.active": true,
}

// counted puts the 0 where a count was left out.
func counted(f event.Field) event.Field {
	if !counts[f.Path] || f.Hidden {
		return f
	}
	switch f.Op {
	case event.Add:
		f.Op, f.From = event.Replace, int64(0)
	case event.Remove:
		f.Op, f.To = event.Replace, int64(0)
	case event.Replace:
	}
	return f
}

// conditions has words for all conditions of an object that had none.
func (t *teller) conditions(_ []step, f event.Field) (phrase, bool) {
	all, ok := f.To.([]any)
	if f.Path != "status.conditions" || f.Op != event.Add || !ok {
		return phrase{}, false
	}
	var each []string
	for _, one := range all {
		c := tree{one}
		if kind := c.text("type"); kind != "" {
			each = append(each, clean(kind)+" "+t.value(c.text("status"))+t.reason(c))
		}
	}
	return phrase{cut(strings.Join(each, ", "), t.columns), named}, len(each) > 0
}

// taints has words for the first and the last taints of a Node.
func (t *teller) taints(_ []step, f event.Field) (phrase, bool) {
	all, verb := f.To, "added"
	if f.Op == event.Remove {
		all, verb = f.From, "removed"
	}
	list, ok := all.([]any)
	if f.Path != "spec.taints" || f.Op == event.Replace || !ok || len(list) == 0 {
		return phrase{}, false
	}
	var each []string
	for _, one := range list {
		taint := tree{one}
		text := taint.text("key")
		if v := taint.text("value"); v != "" {
			text += "=" + v
		}
		each = append(each, text+":"+taint.text("effect"))
	}
	name := "taint "
	if len(each) > 1 {
		name = "taints "
	}
	return phrase{name + t.value(strings.Join(each, " ")) + " " + verb, named}, true
}
