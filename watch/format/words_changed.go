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

// mostPhrases is how many changes a line has in full; it counts the others.
const mostPhrases = 3

// phrase is the words for a field, or for several that belong together. The zero phrase says
// that there are none.
type phrase struct {
	text string
	rank rank
}

// rank says how much a phrase matters. The lowest comes first.
type rank int

const (
	none     rank = iota
	first         // what most readers look for: a deletion, the Node of a Pod
	broken        // a container that cannot run
	bad           // a condition that is bad
	named         // there is a word for it
	part          // a condition that is as it should be, or that follows from another
	unnamed       // only its path
	noise         // it goes with every change of its kind
	silenced      // another phrase says it
)

// wording finds words for one event.
type wording struct {
	e       *event.Event
	object  jsontree.Tree
	columns int             // of a single value, at most
	said    map[string]bool // of what several fields say together
}

// once returns a phrase the first time that it is called with a name.
func (w *wording) once(name, text string, r rank) phrase {
	if w.said[name] {
		return phrase{rank: silenced}
	}
	w.said[name] = true
	return phrase{text, r}
}

func (w *wording) value(v any) string { return value(v, w.columns) }

// changed says what changed, by the fields.
func (w *wording) changed() string {
	e := w.e
	if len(e.Fields) == 0 {
		switch {
		case e.Merged > 1:
			return "changed, and changed back"
		case e.Is(event.Version):
			return "nothing but the resourceVersion"
		}
		return "what changed is not known"
	}
	wanted := slices.ContainsFunc(e.Fields, func(f event.Field) bool {
		return (f.Class == event.Content || f.Class == event.Metadata) && w.field(f).rank < noise
	})
	w.said = map[string]bool{}
	var phrases []phrase
	for _, f := range e.Fields {
		p := w.field(f)
		if p.rank == silenced || p.text == "" {
			continue
		}
		if wanted && f.Class == event.Status && alone(e) {
			p.rank = noise
		}
		phrases = append(phrases, p)
	}
	slices.SortStableFunc(phrases, byRank)
	if len(phrases) > 0 && phrases[0].rank < noise {
		phrases = slices.DeleteFunc(phrases, func(p phrase) bool { return p.rank == noise })
	} else if e.Is(event.Heartbeat) {
		return "heartbeat"
	}
	return w.sum(phrases)
}

func byRank(a, b phrase) int { return int(a.rank) - int(b.rank) }

// desired says which of the desired state changed; nothing if none of it did.
func (w *wording) desired() string {
	var phrases []phrase
	for _, f := range w.e.Fields {
		if f.Class != event.Content {
			continue
		}
		if p := w.field(f); p.text != "" && p.rank < noise {
			phrases = append(phrases, p)
		}
	}
	if len(phrases) == 0 {
		return ""
	}
	slices.SortStableFunc(phrases, byRank)
	return w.sum(phrases)
}

// alone reports whether an event is one write. A status that is written together with
// something else reports of it, and is not what a reader looks for: "scheduled on node-1" says
// PodScheduled too. In several writes it is news of its own.
func alone(e *event.Event) bool {
	return e.Verb == event.Updated && e.Merged <= 1 && !e.Missed
}

// sum makes one text of phrases.
func (w *wording) sum(phrases []phrase) string {
	if len(phrases) == 0 || len(phrases) > mostPhrases && phrases[0].rank >= unnamed {
		// There is a word for none of them: the paths say more than a few of the values.
		var paths []string
		for _, f := range w.e.Fields {
			paths = append(paths, clean(f.Path))
		}
		return cut(count(len(paths), "field")+": "+strings.Join(paths, ", "), w.columns+len("00 fields: "))
	}
	var texts []string
	for _, p := range phrases[:min(len(phrases), mostPhrases)] {
		texts = append(texts, p.text)
	}
	if more := len(phrases) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

// fromTo returns "name 1 → 3", or what else happened to it.
func (w *wording) fromTo(name string, f event.Field) string {
	switch {
	case f.Hidden:
		return name + " " + map[event.Op]string{event.Add: "added", event.Remove: "removed", event.Replace: "changed"}[f.Op]
	case f.Op == event.Add:
		return name + " " + w.value(f.To)
	case f.Op == event.Remove:
		return name + " removed (was " + w.value(f.From) + ")"
	case !single(f.From) && !single(f.To):
		return name + " changed"
	}
	return name + " " + w.value(f.From) + " → " + w.value(f.To)
}

// plainNames are fields that people have a name for.
var plainNames = map[string]string{
	"spec.replicas":            "replicas",
	"spec.paused":              "paused",
	"spec.suspend":             "suspend",
	"spec.schedule":            "schedule",
	"spec.type":                "type",
	"status.phase":             "phase",
	"status.replicas":          "replicas there",
	"status.readyReplicas":     "ready",
	"status.availableReplicas": "available",
	"status.updatedReplicas":   "up to date",
	"status.numberReady":       "ready",
	"status.succeeded":         "succeeded",
	"status.failed":            "failed",
	"status.active":            "active",
	"status.podIP":             "IP",
}

// noisy are fields that go with other changes and say nothing beside them.
var noisy = map[string]bool{
	"metadata.generation": true, "metadata.resourceVersion": true, "metadata.managedFields": true,
	"metadata.creationTimestamp": true, "metadata.uid": true, "status.observedGeneration": true,
	"status.unavailableReplicas": true, "status.podIPs": true, "status.hostIP": true, "status.hostIPs": true, "status.startTime": true,
	"status.qosClass": true, "status.terminatingReplicas": true, "status.uncountedTerminatedPods": true,
	"metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]": true,
}

// field returns the words for a field.
func (w *wording) field(f event.Field) phrase {
	f = counted(f)
	name := clean(f.Path)
	if plain, ok := plainNames[f.Path]; ok {
		return phrase{w.fromTo(plain, f), named}
	}
	if noisy[f.Path] || f.Class == event.Status && strings.HasSuffix(f.Path, "[order]") {
		return phrase{w.fromTo(name, f), noise}
	}
	path, err := diff.ParsePath(f.Path)
	if err != nil {
		path = diff.Path{{Name: f.Path}}
	}
	if p := w.known(path, f); p != (phrase{}) {
		return p
	}
	if f.Class == event.Heartbeat {
		return phrase{w.fromTo(name, f), noise}
	}
	return phrase{w.fromTo(name, f), unnamed}
}

// known returns the words for a field that has some.
func (w *wording) known(path diff.Path, f event.Field) phrase {
	switch below := path[1:]; path[0].Name {
	case "metadata":
		return w.metadata(below, f)
	case "status":
		return w.status(below, f)
	case "spec":
		return w.spec(below, f)
	case "data", "binaryData", "stringData":
		return w.data(path, f)
	}
	return phrase{}
}

// has reports whether a field is among those of the event.
func (w *wording) has(path string) bool {
	return slices.ContainsFunc(w.e.Fields, func(f event.Field) bool { return f.Path == path })
}

// key returns the text of what an element of a list is known by.
func key(e diff.Element) string {
	if len(e.Keys) == 1 {
		return fmt.Sprint(e.Keys[0].Value)
	}
	return strings.Trim(diff.Path{e}.String(), "[]")
}

// happened returns "name added" or "name removed".
func happened(name string, op event.Op) phrase {
	if op == event.Add {
		return phrase{name + " added", named}
	}
	return phrase{name + " removed", named}
}
