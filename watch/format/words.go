// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/jsontree"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/trouble"
)

// Words returns the change in a few words: "replicas 1 → 3", "image of web nginx:1.27 →
// nginx:1.28", "deletion requested, 30 s of grace". The author is not in them. They are
// one line without control characters; long values are shortened. They may be empty.
// They are for people: any version may change them.
func Words(e *event.Event) string { return words(e, widestValue) }

// Summarized returns an event with a summary for programs: its own, else the change in words, else
// its verb. That of merged changes says too what began them. The event itself stays as it is.
func Summarized(e *event.Event) *event.Event {
	if e.Summary != "" && e.Verb != event.Settled && e.Verb != event.Updated {
		return e
	}
	summarized := *e
	summarized.Summary = cmp.Or(Words(e), string(e.Verb))
	return &summarized
}

// words is Words with values of so many columns.
func words(e *event.Event, columns int) string {
	w := &wording{e: e, object: jsontree.Tree{Value: e.Object()}, columns: columns, said: map[string]bool{}}
	summary := clean(e.Summary)
	switch e.Verb {
	case event.Deleted:
		said := w.last()
		if summary != "" {
			said = append([]string{summary}, said...)
		}
		return strings.Join(said, ", ")
	case event.Replaced:
		if len(e.Fields) == 0 {
			return "another object of this name"
		}
		return "another object of this name: " + w.changed()
	case event.Created, event.Existing:
		if summary == "" && e.New != nil {
			return strings.Join(w.about(), ", ")
		}
	case event.Updated, event.Settled:
		if summary == "" {
			return w.changed()
		}
		// The summary of an event that was read from JSON may say it already.
		if desired := w.desired(); desired != "" && !strings.HasPrefix(summary, desired) {
			return desired + ", " + summary
		}
	case event.Failing, event.Resolved:
	}
	return summary
}

// about describes an object by what people look for first in objects of its kind.
func (w *wording) about() []string {
	o := w.object
	var said []string
	add := func(prefix, text string) {
		if text != "" {
			said = append(said, prefix+text)
		}
	}
	if w.e.Verb == event.Existing { // no event says when its trouble began
		for _, sentence := range trouble.Now(w.e.Kind, w.e.New) {
			add("", clean(sentence))
		}
	}
	switch kindOf(w.e) {
	case "pod":
		add("", w.images(o.At("spec")))
		add("on ", w.text(o, "spec", "nodeName"))
		if w.e.Verb == event.Existing {
			add("", w.text(o, "status", "phase"))
		}
	case "deployment.apps", "statefulset.apps", "replicaset.apps", "replicationcontroller", "daemonset.apps", "job.batch":
		if n := o.At("spec", "replicas").Value; n != nil {
			add("replicas ", w.value(n))
		}
		add("", w.images(o.At("spec", "template", "spec")))
	case "cronjob.batch":
		add("schedule ", w.value(o.At("spec", "schedule").Value))
	case "service":
		var ports []string
		for _, p := range o.List("spec", "ports") {
			ports = append(ports, w.value(p.At("port").Value))
		}
		add("", w.value(cmp.Or(o.Text("spec", "type"), "ClusterIP")))
		add("", squeeze("ports "+strings.Join(ports, " "), w.columns))
	case "configmap", "secret":
		add("", w.keys())
	case "event", "event.events.k8s.io":
		if text := o.Text("message") + o.Text("note"); text != "" {
			add(w.value(o.Text("reason"))+": ", w.value(text))
		}
	}
	if owner := o.List("metadata", "ownerReferences"); len(said) == 0 && len(owner) > 0 {
		add("of ", w.value(owner[0].Text("kind"))+" "+w.value(owner[0].Text("name")))
	}
	return said
}

// text returns the text at a path, empty if there is none.
func (w *wording) text(o jsontree.Tree, path ...string) string {
	if text := o.Text(path...); text != "" {
		return w.value(text)
	}
	return ""
}

// last describes an object that is gone.
func (w *wording) last() []string {
	o := w.object
	var said []string
	if kindOf(w.e) == "pod" {
		state := ""
		if phase := w.phase(); phase != "" {
			state = "was " + phase
			if reason := w.text(o, "status", "reason"); reason != "" {
				state += ": " + reason
			}
		}
		if node := w.text(o, "spec", "nodeName"); node != "" {
			state = strings.TrimPrefix(state+" on "+node, " ")
		}
		if state != "" {
			said = append(said, state)
		}
	}
	if n := o.At("spec", "replicas").Value; n != nil {
		said = append(said, "had replicas "+w.value(n))
	}
	if created, err := time.Parse(time.RFC3339, o.Text("metadata", "creationTimestamp")); err == nil && w.e.Time.After(created) {
		said = append(said, duration(w.e.Time.Sub(created))+" old")
	}
	return said
}

// phase returns the phase of a Pod that is gone. The containers of a Pod that is deleted are stopped,
// and then it is Failed or Succeeded for a moment: until then it was Running, or Pending if no
// container had started.
func (w *wording) phase() string {
	o := w.object
	phase := w.text(o, "status", "phase")
	until, err := time.Parse(time.RFC3339, o.Text("metadata", "deletionTimestamp"))
	if phase != "Failed" && phase != "Succeeded" || o.Text("status", "reason") != "" || err != nil {
		return phase
	}
	// Containers that restart always are at an end only because the Pod was deleted. Of others, the
	// time tells: but the last request, with a grace period of 0, moves the time of the deletion.
	// Source: k8s.io/apiserver/pkg/registry/rest, BeforeDelete.
	restarts := o.Text("spec", "restartPolicy") == "Always"
	asked := until.Add(-time.Duration(o.Number(0, "metadata", "deletionGracePeriodSeconds")) * time.Second)
	statuses := o.List("status", "containerStatuses")
	before := "Pending"
	for _, c := range statuses {
		finished, err := time.Parse(time.RFC3339, c.Text("state", "terminated", "finishedAt"))
		if !restarts && (err != nil || finished.Before(asked)) {
			return phase
		}
		if c.Text("state", "terminated", "startedAt") != "" {
			before = "Running"
		}
	}
	if len(statuses) == 0 {
		return phase
	}
	return before
}

// images returns "image a" or "images a b" of the containers of a Pod.
func (w *wording) images(spec jsontree.Tree) string {
	var images []string
	for _, c := range spec.List("containers") {
		images = append(images, w.value(c.Text("image")))
	}
	switch len(images) {
	case 0:
		return ""
	case 1:
		return "image " + images[0]
	}
	return squeeze("images "+strings.Join(images, " "), max(w.columns, len("images ")))
}

// keys returns the names of the entries of a ConfigMap or a Secret.
func (w *wording) keys() string {
	var names []string
	for _, field := range []string{"data", "binaryData"} {
		m, _ := w.object.At(field).Value.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			names = append(names, clean(name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return cut(count(len(names), "key")+": "+strings.Join(names, ", "), w.columns)
}
