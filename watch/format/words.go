// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

// Words returns the change in a few words: "replicas 1 → 3", "image of web nginx:1.27 →
// nginx:1.28", "deletion requested, 30 s of grace". Who made it is not in them. They are
// one line without control characters, and long values are shortened; they may be empty.
// They are for people: what they are may change with any version.
func Words(e *event.Event) string { return words(e, widestValue) }

// words is Words with values of so many columns.
func words(e *event.Event, columns int) string {
	switch e.Verb {
	case event.Created, event.Existing:
		if e.Summary != "" {
			return clean(e.Summary)
		}
		return strings.Join(about(e, tree{e.New}, columns), ", ")
	case event.Deleted:
		said := last(e, tree{e.Old}, columns)
		if e.Summary != "" {
			said = append([]string{clean(e.Summary)}, said...)
		}
		return strings.Join(said, ", ")
	case event.Replaced:
		if len(e.Fields) == 0 {
			return "another object of this name"
		}
		return "another object of this name: " + changed(e, columns)
	case event.Updated, event.Settled:
	}
	if e.Summary != "" {
		return clean(e.Summary)
	}
	return changed(e, columns)
}

// about says what an object is: what people look for first in objects of its kind.
func about(e *event.Event, o tree, columns int) []string {
	if o.value == nil || e.New == nil {
		return nil
	}
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	switch kind := kindOf(e); kind {
	case "pod":
		if images := imagesOf(o.at("spec"), columns); images != "" {
			say("%s", images)
		}
		if node := o.text("spec", "nodeName"); node != "" {
			say("on %s", value(node, columns))
		}
		if phase := o.text("status", "phase"); e.Verb == event.Existing && phase != "" {
			say("%s", value(phase, columns))
		}
	case "deployment.apps", "statefulset.apps", "replicaset.apps", "replicationcontroller", "daemonset.apps", "job.batch":
		if n := o.at("spec", "replicas").value; n != nil {
			say("replicas %s", value(n, columns))
		}
		if images := imagesOf(o.at("spec", "template", "spec"), columns); images != "" {
			say("%s", images)
		}
	case "cronjob.batch":
		say("schedule %s", value(o.at("spec", "schedule").value, columns))
	case "service":
		kind := o.text("spec", "type")
		if kind == "" {
			kind = "ClusterIP"
		}
		var ports []string
		for _, p := range o.list("spec", "ports") {
			ports = append(ports, value(p.at("port").value, columns))
		}
		say("%s, %s", value(kind, columns), squeeze("ports "+strings.Join(ports, " "), columns))
	case "configmap", "secret":
		if names := keysOf(o, columns); names != "" {
			say("%s", names)
		}
	case "event", "event.events.k8s.io":
		if text := o.text("message") + o.text("note"); text != "" {
			say("%s: %s", value(o.text("reason"), columns), value(text, columns))
		}
	}
	if len(said) == 0 {
		if owner := o.list("metadata", "ownerReferences"); len(owner) > 0 {
			say("of %s %s", value(owner[0].text("kind"), columns), value(owner[0].text("name"), columns))
		}
	}
	return said
}

// last says what is known of an object that is gone.
func last(e *event.Event, o tree, columns int) []string {
	var said []string
	if kindOf(e) == "pod" {
		state := ""
		if phase := o.text("status", "phase"); phase != "" {
			state = "was " + value(phase, columns)
			if reason := o.text("status", "reason"); reason != "" {
				state += ": " + value(reason, columns)
			}
		}
		if node := o.text("spec", "nodeName"); node != "" {
			state = strings.TrimPrefix(state+" on "+value(node, columns), " ")
		}
		if state != "" {
			said = append(said, state)
		}
	}
	if n := o.at("spec", "replicas").value; n != nil {
		said = append(said, "had replicas "+value(n, columns))
	}
	if created, err := time.Parse(time.RFC3339, o.text("metadata", "creationTimestamp")); err == nil && e.Time.After(created) {
		said = append(said, duration(e.Time.Sub(created))+" old")
	}
	return said
}

// imagesOf returns "image a" or "images a, b" of the containers of a Pod.
func imagesOf(spec tree, columns int) string {
	var images []string
	for _, c := range spec.list("containers") {
		images = append(images, value(c.text("image"), columns))
	}
	switch len(images) {
	case 0:
		return ""
	case 1:
		return "image " + images[0]
	}
	return squeeze("images "+strings.Join(images, " "), max(columns, len("images ")))
}

// keysOf returns the names of what a ConfigMap or a Secret holds.
func keysOf(o tree, columns int) string {
	var names []string
	for _, field := range []string{"data", "binaryData"} {
		m, _ := o.at(field).value.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			names = append(names, clean(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return cut(count(len(names), "key")+": "+strings.Join(names, ", "), columns)
}
