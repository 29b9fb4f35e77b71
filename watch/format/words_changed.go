// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/watch/event"
)

// mostPhrases is how many changes a line tells of in full; it counts the others.
const mostPhrases = 3

// phrase is what is said of a field, or of several that belong together.
type phrase struct {
	text string
	rank rank
}

// rank says how much a phrase matters. The lowest is said first.
type rank int

const (
	first    rank = iota // what most look for: a deletion, the Node that a Pod got
	named                // there is a word for it
	unnamed              // said by its path
	noise                // it goes with every change of its kind
	silenced             // another phrase says it
)

// changed says what changed, by the fields.
func changed(e *event.Event, columns int) string {
	if len(e.Fields) == 0 {
		switch {
		case e.Merged > 1:
			return "changed, and changed back"
		case e.Is(event.Version):
			return "nothing but the resourceVersion"
		}
		return "what changed is not known"
	}
	t := teller{e: e, object: tree{e.New}, columns: columns, said: map[string]bool{}}
	var phrases []phrase
	wanted := slices.ContainsFunc(e.Fields, func(f event.Field) bool {
		return (f.Class == event.Content || f.Class == event.Metadata) && t.field(f).rank < noise
	})
	t.said = map[string]bool{}
	for _, f := range e.Fields {
		p := t.field(f)
		if p.rank == silenced || p.text == "" {
			continue
		}
		if wanted && f.Class == event.Status && alone(e) {
			p.rank = noise
		}
		phrases = append(phrases, p)
	}
	slices.SortStableFunc(phrases, func(a, b phrase) int { return int(a.rank) - int(b.rank) })
	if len(phrases) > 0 && phrases[0].rank < noise {
		phrases = slices.DeleteFunc(phrases, func(p phrase) bool { return p.rank == noise })
	} else if e.Is(event.Heartbeat) {
		return "heartbeat"
	}
	return sum(phrases, e, columns)
}

// alone reports whether an event is one write. A status that is written together with
// something else reports of it, and is not what a reader looks for: "scheduled on node-1" says
// PodScheduled too. In several writes it is news of its own.
func alone(e *event.Event) bool {
	return e.Verb == event.Updated && e.Merged <= 1 && !e.Missed
}

// sum makes one text of phrases.
func sum(phrases []phrase, e *event.Event, columns int) string {
	var texts []string
	for _, p := range phrases {
		if len(texts) < mostPhrases {
			texts = append(texts, p.text)
		}
	}
	if more := len(phrases) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	if len(phrases) == 0 || len(phrases) > mostPhrases && phrases[0].rank >= unnamed {
		// Nothing that there is a word for: the paths say more than a few of the values.
		var paths []string
		for _, f := range e.Fields {
			paths = append(paths, clean(f.Path))
		}
		return cut(count(len(paths), "field")+": "+strings.Join(paths, ", "), columns+len("00 fields: "))
	}
	return strings.Join(texts, ", ")
}

// teller finds words for the fields of one event.
type teller struct {
	e       *event.Event
	object  tree
	columns int
	said    map[string]bool // of what several fields tell together
}

// once returns a phrase the first time it is asked for by that name.
func (t *teller) once(name, text string) phrase {
	if t.said[name] {
		return phrase{rank: silenced}
	}
	t.said[name] = true
	return phrase{text, named}
}

func (t *teller) value(v any) string { return value(v, t.columns) }

// fromTo returns "name 1 → 3", or what else happened to it.
func (t *teller) fromTo(name string, f event.Field) string {
	switch {
	case f.Hidden:
		return name + " " + map[event.Op]string{event.Add: "added", event.Remove: "removed", event.Replace: "changed"}[f.Op]
	case f.Op == event.Add:
		return name + " " + t.value(f.To)
	case f.Op == event.Remove:
		return name + " removed (was " + t.value(f.From) + ")"
	case !single(f.From) && !single(f.To):
		return name + " changed"
	}
	return name + " " + t.value(f.From) + " → " + t.value(f.To)
}

// plainNames are fields that have a name of their own in the words of people.
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

// field returns what is said of a field.
func (t *teller) field(f event.Field) phrase {
	f = counted(f)
	if name, ok := plainNames[f.Path]; ok {
		return phrase{t.fromTo(name, f), named}
	}
	if noisy[f.Path] {
		return phrase{t.fromTo(clean(f.Path), f), noise}
	}
	path := parse(f.Path)
	for _, find := range []func([]step, event.Field) (phrase, bool){
		t.deployment, t.scheduled, t.conditions, t.taints, t.metadata, t.condition, t.container, t.containerStatus, t.node, t.data,
	} {
		if p, ok := find(path, f); ok {
			return p
		}
	}
	name := clean(f.Path)
	if f.Class == event.Heartbeat || f.Class == event.Status && strings.HasSuffix(f.Path, "[order]") {
		return phrase{t.fromTo(name, f), noise}
	}
	return phrase{t.fromTo(name, f), unnamed}
}

// metadata has words for deletions, labels, annotations, finalizers and owners.
func (t *teller) metadata(path []step, f event.Field) (phrase, bool) {
	rest, ok := under(path, "metadata")
	if !ok {
		return phrase{}, false
	}
	switch rest[0].name {
	case "deletionTimestamp":
		if f.Op != event.Add {
			// A kubelet does it when the containers have ended, to have the Pod go.
			grace, known := t.object.at("metadata", "deletionGracePeriodSeconds").value.(int64)
			switch {
			case !known:
				return phrase{"deletion moved", named}, true
			case grace == 0:
				return phrase{"grace is over", named}, true
			}
			return phrase{fmt.Sprintf("grace changed to %d s", grace), named}, true
		}
		text := "deletion requested"
		if grace, ok := t.object.at("metadata", "deletionGracePeriodSeconds").value.(int64); ok && grace > 0 {
			text += fmt.Sprintf(", %d s of grace", grace)
		}
		if waits, ok := t.object.at("metadata", "finalizers").value.([]any); ok && len(waits) > 0 {
			text += ", waits for " + t.value(waits)
		}
		return phrase{text, first}, true
	case "deletionGracePeriodSeconds":
		return phrase{t.fromTo("grace", f), noise}, true
	case "labels":
		return t.entries("label", rest[1:], f)
	case "annotations":
		return t.entries("annotation", rest[1:], f)
	case "finalizers":
		return t.element("finalizer", f)
	}
	return phrase{}, false
}

// entries says what happened to one entry of a map, or to the map.
func (t *teller) entries(name string, rest []step, f event.Field) (phrase, bool) {
	if len(rest) > 0 {
		key := clean(rest[0].name)
		if f.Hidden {
			return phrase{t.fromTo(name+" "+key, f), named}, true
		}
		switch f.Op {
		case event.Add:
			return phrase{name + " " + key + "=" + t.value(f.To) + " added", named}, true
		case event.Remove:
			return phrase{name + " " + key + "=" + t.value(f.From) + " removed", named}, true
		case event.Replace:
		}
		return phrase{t.fromTo(name+" "+key, f), named}, true
	}
	m, ok := f.To.(map[string]any)
	verb := "added"
	if f.Op == event.Remove {
		m, ok = f.From.(map[string]any)
		verb = "removed"
	}
	if !ok || f.Op == event.Replace || f.Hidden || len(m) == 0 {
		return phrase{}, false
	}
	var each []string
	for _, key := range sortedKeys(m) {
		each = append(each, clean(key)+"="+t.value(m[key]))
	}
	if len(each) > 1 {
		name += "s"
	}
	return phrase{name + " " + cut(strings.Join(each, " "), t.columns) + " " + verb, named}, true
}

// element says what happened to an element of a list of names.
func (t *teller) element(name string, f event.Field) (phrase, bool) {
	switch f.Op {
	case event.Add:
		return phrase{name + " " + t.value(f.To) + " added", named}, true
	case event.Remove:
		return phrase{name + " " + t.value(f.From) + " removed", named}, true
	case event.Replace:
	}
	return phrase{t.fromTo(name, f), named}, true
}

// condition has words for a condition of a status. Its status is what is told, with the
// reason if it is not good; if only the reason changed, that.
func (t *teller) condition(path []step, f event.Field) (phrase, bool) {
	rest, ok := under(path, "status", "conditions")
	if !ok || !rest[0].list || rest[0].keys == "order" {
		return phrase{}, false
	}
	kind := rest[0].key()
	name := clean(kind)
	now := t.object.named("type", kind, "status", "conditions")
	if f.Op == event.Remove && len(rest) == 1 {
		return phrase{name + " removed", named}, true
	}
	if len(rest) == 1 && f.Op == event.Add {
		now = tree{f.To}
		return t.once("condition "+kind, name+" "+t.value(now.text("status"))+t.reason(now)), true
	}
	if len(rest) < 2 {
		return phrase{}, false
	}
	switch rest[1].name {
	case "status":
		return t.once("condition "+kind, t.fromTo(name, f)+t.reason(now)), true
	case "reason":
		if t.changes(path[:3], "status") {
			return phrase{rank: silenced}, true
		}
		return t.once("condition "+kind, t.fromTo(name, f)), true
	case "message":
		if t.changes(path[:3], "status") || t.changes(path[:3], "reason") {
			return phrase{rank: silenced}, true
		}
		return t.once("condition "+kind, name+": "+t.value(f.To)), true
	}
	return phrase{t.fromTo(clean(f.Path), f), noise}, true
}

// reason returns the reason of a condition that is not true.
func (t *teller) reason(condition tree) string {
	if reason := condition.text("reason"); reason != "" && condition.text("status") != "True" {
		return " (" + t.value(reason) + ")"
	}
	return ""
}

// changes reports whether a field beside another one changed too.
func (t *teller) changes(parent []step, name string) bool {
	return slices.ContainsFunc(t.e.Fields, func(f event.Field) bool {
		path := parse(f.Path)
		return len(path) == len(parent)+1 && path[len(parent)].name == name && slices.Equal(path[:len(parent)], parent)
	})
}

// container has words for the containers of Pods and of templates.
func (t *teller) container(path []step, f event.Field) (phrase, bool) {
	at := slices.IndexFunc(path, func(s step) bool {
		return s.name == "containers" || s.name == "initContainers" || s.name == "ephemeralContainers"
	})
	if at < 0 || at+1 >= len(path) || path[0].name != "spec" || !path[at+1].list {
		return phrase{}, false
	}
	name := clean(path[at+1].key())
	switch {
	case name == "order":
		return phrase{"order of containers changed", named}, true
	case len(path) == at+2 && f.Op == event.Add:
		return phrase{"container " + name + " added: image " + t.value(tree{f.To}.text("image")), named}, true
	case len(path) == at+2 && f.Op == event.Remove:
		return phrase{"container " + name + " removed", named}, true
	case len(path) == at+3 && path[at+2].name == "image":
		return phrase{t.fromTo("image of "+name, f), named}, true
	case len(path) > at+3 && path[at+2].name == "env" && path[at+3].list:
		variable := "env " + clean(path[at+3].key()) + " of " + name
		switch {
		case len(path) == at+4 && f.Op == event.Add:
			return phrase{variable + " added", named}, true
		case len(path) == at+4 && f.Op == event.Remove:
			return phrase{variable + " removed", named}, true
		case path[len(path)-1].name == "value":
			return phrase{t.fromTo(variable, f), named}, true
		}
	case len(path) > at+3 && path[at+2].name == "resources":
		var steps []string
		for _, s := range path[at+3:] {
			steps = append(steps, clean(s.name))
		}
		return phrase{t.fromTo(strings.Join(steps, " ")+" of "+name, f), named}, true
	}
	return phrase{}, false
}

// containerStatus says of a container that it runs, waits or ended, and how often it was
// started again.
func (t *teller) containerStatus(path []step, f event.Field) (phrase, bool) {
	rest, ok := under(path, "status")
	if !ok || rest[0].name != "containerStatuses" && rest[0].name != "initContainerStatuses" {
		return phrase{}, false
	}
	if len(rest) == 1 {
		return phrase{t.fromTo("containers", f), noise}, true
	}
	name := rest[1].key()
	now := t.object.named("name", name, "status", rest[0].name)
	switch {
	case len(rest) == 2 || rest[2].name == "state":
		if text := t.state(now.at("state")); text != "" {
			return t.once("container "+name, clean(name)+" "+text), true
		}
	case rest[2].name == "restartCount" && f.Op == event.Replace:
		return phrase{"restarts of " + clean(name) + " " + t.value(f.From) + " → " + t.value(f.To), named}, true
	}
	return phrase{t.fromTo(clean(f.Path), f), noise}, true
}

func (t *teller) state(state tree) string {
	if m, ok := state.at("terminated").value.(map[string]any); ok {
		text := "ended"
		if reason, ok := m["reason"].(string); ok && reason != "" {
			text += ": " + t.value(reason)
		}
		if code := m["exitCode"]; code != nil && code != int64(0) {
			text += ", exit " + t.value(code)
		}
		return text
	}
	if m, ok := state.at("waiting").value.(map[string]any); ok {
		reason, _ := m["reason"].(string)
		return "waiting: " + t.value(reason)
	}
	if state.at("running").value != nil {
		return "running"
	}
	return ""
}

// node has words for Nodes that take no more Pods.
func (t *teller) node(path []step, f event.Field) (phrase, bool) {
	if f.Path != "spec.unschedulable" || len(path) != 2 {
		return phrase{}, false
	}
	if f.To == true {
		return phrase{"cordoned", first}, true
	}
	return phrase{"uncordoned", first}, true
}

// data has words for what ConfigMaps and Secrets hold.
func (t *teller) data(path []step, f event.Field) (phrase, bool) {
	if len(path) == 0 || len(path) > 2 || path[0].name != "data" && path[0].name != "binaryData" && path[0].name != "stringData" {
		return phrase{}, false
	}
	name := clean(f.Path)
	if len(path) == 2 {
		name = clean(path[0].name + "." + path[1].name)
	}
	switch from, to := lines(f.From), lines(f.To); {
	case f.Hidden:
		return phrase{t.fromTo(name, f), named}, true
	case from < 2 && to < 2 && f.Op == event.Add:
		return phrase{name + "=" + t.value(f.To) + " added", named}, true
	case from < 2 && to < 2:
		return phrase{t.fromTo(name, f), named}, true
	case f.Op == event.Add:
		return phrase{name + " added, " + count(to, "line"), named}, true
	case f.Op == event.Remove:
		return phrase{name + " removed, " + count(from, "line"), named}, true
	case from == to:
		return phrase{name + " changed, " + count(to, "line"), named}, true
	default:
		return phrase{fmt.Sprintf("%s changed, %s → %d", name, count(from, "line"), to), named}, true
	}
}

// lines returns how many lines a text has; anything else has none.
func lines(v any) int {
	s, ok := v.(string)
	if !ok || s == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
}
