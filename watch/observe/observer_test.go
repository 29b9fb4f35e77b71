// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
)

var (
	pods      = event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	secrets   = event.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	configs   = event.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}
	nodes     = event.Kind{Version: "v1", Kind: "Node", Resource: "nodes"}
	events    = event.Kind{Version: "v1", Kind: "Event", Resource: "events", Namespaced: true}
	leases    = event.Kind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Resource: "leases", Namespaced: true}
	endpoints = event.Kind{Version: "v1", Kind: "Endpoints", Resource: "endpoints", Namespaced: true}
	widgets   = event.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true}
)

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var v map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v); err != nil {
		t.Fatalf("parsing %s: %v", text, err)
	}
	return v
}

func rules(t testing.TB, texts ...string) []observe.Rule {
	t.Helper()
	var out []observe.Rule
	for _, text := range texts {
		r, err := observe.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		if r.String() != text {
			t.Errorf("%q became %q", text, r)
		}
		out = append(out, r)
	}
	return out
}

func observer(t testing.TB, k event.Kind, hide ...string) *observe.Observer {
	return observe.New(observe.Options{
		Kind: k, Hide: rules(t, hide...), Key: []byte("of this test"),
		Clock: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
}

// told is an event as a test writes it: the classes, and a line for each field.
func told(e *event.Event) string {
	var b strings.Builder
	fmt.Fprint(&b, e.Classes)
	for _, f := range e.Fields {
		fmt.Fprintf(&b, "; %s %s %s", f.Class, f.Op, f.Path)
		if f.Hidden {
			b.WriteString(" hidden")
		}
	}
	return b.String()
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     event.Kind
		old, new string
		want     string
	}{
		{"nothing but the version", pods, `{"metadata":{"resourceVersion":"1"}}`, `{"metadata":{"resourceVersion":"2"}}`, "[versions]"},
		{"bookkeeping is told of nowhere", pods, `{"metadata":{"resourceVersion":"1","generation":1,"managedFields":[{"manager":"a"}]}}`,
			`{"metadata":{"resourceVersion":"2","generation":2,"managedFields":[{"manager":"b"},{}]}}`, "[versions]"},
		{"content", pods, `{"spec":{"nodeName":"a"}}`, `{"spec":{"nodeName":"b"}}`, "[content]; content replace spec.nodeName"},
		{"data is content", configs, `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, "[content]; content replace data.a"},
		{"metadata", pods, `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"a":"2"},"finalizers":["x"],"annotations":{"a.b/c":"d"}}}`,
			"[metadata]; metadata add metadata.annotations; metadata add metadata.finalizers; metadata replace metadata.labels.a"},
		{"a deletion asked for is content", pods, `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
			"[content]; content add metadata.deletionTimestamp"},
		{"a deletion hurried is content too", pods, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:30Z","deletionGracePeriodSeconds":30}}`, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:05Z","deletionGracePeriodSeconds":5}}`,
			"[content]; content replace metadata.deletionGracePeriodSeconds; content replace metadata.deletionTimestamp"},
		{"a deletion whose time is over is status, as it is gone at once", pods, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:30Z","deletionGracePeriodSeconds":30}}`, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:01Z","deletionGracePeriodSeconds":0}}`,
			"[status]; status replace metadata.deletionGracePeriodSeconds; status replace metadata.deletionTimestamp"},
		{"unless a finalizer holds it", pods, `{"metadata":{"finalizers":["x"],"deletionGracePeriodSeconds":30}}`, `{"metadata":{"finalizers":["x"],"deletionGracePeriodSeconds":0}}`,
			"[content]; content replace metadata.deletionGracePeriodSeconds"},
		{"status", pods, `{"status":{"phase":"Pending"}}`, `{"status":{"phase":"Running"}}`, "[status]; status replace status.phase"},
		{"an observed generation is status", widgets, `{"status":{"observedGeneration":1}}`, `{"status":{"observedGeneration":2}}`, "[status]; status replace status.observedGeneration"},
		{"all in their order", pods, `{"status":{"a":1},"spec":{"a":1},"metadata":{"labels":{"a":"1"}}}`, `{"status":{"a":2},"spec":{"a":2},"metadata":{"labels":{"a":"2"}}}`,
			"[content metadata status]; metadata replace metadata.labels.a; content replace spec.a; status replace status.a"},
		{"a lease renewed", leases, `{"spec":{"holderIdentity":"a","renewTime":"1"}}`, `{"spec":{"holderIdentity":"a","renewTime":"2"}}`,
			"[heartbeats]; heartbeats replace spec.renewTime"},
		{"a lease taken", leases, `{"spec":{"holderIdentity":"a","renewTime":"1"}}`, `{"spec":{"holderIdentity":"b","renewTime":"2","leaseTransitions":1}}`,
			"[content]; content replace spec.holderIdentity; content add spec.leaseTransitions; heartbeats replace spec.renewTime"},
		{"renewTime of another kind", widgets, `{"spec":{"renewTime":"1"}}`, `{"spec":{"renewTime":"2"}}`, "[content]; content replace spec.renewTime"},
		{"a node that is alive", nodes, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"1"}]}}`, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"2"}]}}`,
			"[heartbeats]; heartbeats replace status.conditions[type=Ready].lastHeartbeatTime"},
		{"a node that is not", nodes, `{"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":"1"}]}}`, `{"status":{"conditions":[{"type":"Ready","status":"Unknown","lastHeartbeatTime":"2"}]}}`,
			"[status]; heartbeats replace status.conditions[type=Ready].lastHeartbeatTime; status replace status.conditions[type=Ready].status"},
		{"a condition that came is status", nodes, `{"status":{"conditions":[]}}`, `{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":"2"}]}}`,
			"[status]; status add status.conditions[type=Ready]"},
		{"a repeated event", events, `{"count":1,"lastTimestamp":"1"}`, `{"count":2,"lastTimestamp":"2"}`, "[heartbeats]; heartbeats replace count; heartbeats replace lastTimestamp"},
		{"a series begun", events, `{"reason":"x"}`, `{"reason":"x","series":{"count":2}}`, "[heartbeats]; heartbeats add series"},
		{"the trigger time of endpoints", endpoints, `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"1"}}}`,
			"[heartbeats]; heartbeats add metadata.annotations"},
		{"an old leader alive", endpoints, `{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{\"holderIdentity\":\"a\",\"renewTime\":1}"}}}`,
			`{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{\"holderIdentity\":\"a\",\"renewTime\":2}"}}}`,
			"[heartbeats]; heartbeats replace metadata.annotations[control-plane.alpha.kubernetes.io/leader]"},
		{"an old leader gone", endpoints, `{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{\"holderIdentity\":\"a\"}"}}}`,
			`{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{\"holderIdentity\":\"b\"}"}}}`,
			"[metadata]; metadata replace metadata.annotations[control-plane.alpha.kubernetes.io/leader]"},
		{"what was applied follows the content", pods, `{"spec":{"a":1},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"1"}}}`,
			`{"spec":{"a":2},"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"2"}}}`, "[content]; content replace spec.a"},
		{"what was applied alone is metadata", pods, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"1"}}}`,
			`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"2"}}}`,
			"[metadata]; metadata replace metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := observer(t, c.kind).Event(observe.Change{Verb: event.Updated, Old: parse(t, c.old), New: parse(t, c.new)})
			if got := told(e); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestVerbs(t *testing.T) {
	const one = `{"metadata":{"namespace":"team-a","name":"web","uid":"u1","resourceVersion":"5","managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-01-01T00:00:00Z"}]},"spec":{"a":1}}`
	const other = `{"metadata":{"namespace":"team-a","name":"web","uid":"u2","resourceVersion":"9","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"a":2}}`
	o := observer(t, pods)

	created := o.Event(observe.Change{Verb: event.Created, New: parse(t, one)})
	if created.Old != nil || told(created) != "[content]" || created.Key.String() != "team-a/web" || created.UID != "u1" || created.Version != "5" ||
		len(created.Authors) != 1 || created.Authors[0].Manager != "kubectl" || created.Time.Year() != 2026 || created.Kind != pods {
		t.Errorf("created: %+v", created)
	}
	deleted := o.Event(observe.Change{Verb: event.Deleted, Old: parse(t, one), Stale: true})
	if deleted.New != nil || told(deleted) != "[content]" || deleted.Authors != nil || deleted.Version != "5" || !deleted.Stale {
		t.Errorf("deleted: %+v", deleted)
	}
	if from := o.Event(observe.Change{Verb: event.Deleted, New: parse(t, one)}); from.New != nil || from.Old == nil {
		t.Errorf("deleted, the last state given as new: %+v", from)
	}
	replaced := o.Event(observe.Change{Verb: event.Replaced, Old: parse(t, one), New: parse(t, other)})
	if told(replaced) != "[content]; content replace spec.a" || replaced.UID != "u2" {
		t.Errorf("replaced: %s", told(replaced))
	}
	unknown := o.Event(observe.Change{Verb: event.Updated, New: parse(t, one), Missed: true, Classes: []event.Class{event.Status}})
	if told(unknown) != "[status]" || !unknown.Missed || len(unknown.Authors) != 1 {
		t.Errorf("updated from an unknown state: %s", told(unknown))
	}
	if e := o.Event(observe.Change{Verb: event.Updated}); e == nil || told(e) != "[content]" {
		t.Errorf("nothing at all: %+v", e)
	}
	for _, e := range []*event.Event{created, deleted, replaced, unknown} {
		if strings.Contains(jsonOf(t, e), "managedFields") {
			t.Error("managedFields are in the event")
		}
	}
}

func TestIDs(t *testing.T) {
	at := func(uid, version string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "a", "uid": uid, "resourceVersion": version}}
	}
	o, another := observer(t, pods), observe.New(observe.Options{Kind: pods})
	id := func(o *observe.Observer, c observe.Change) string { return o.Event(c).ID }
	same := []observe.Change{
		{Verb: event.Updated, Old: at("u", "1"), New: at("u", "2")},
		{Verb: event.Updated, New: at("u", "2"), Missed: true},
	}
	for _, c := range same {
		if id(o, c) != id(another, same[0]) {
			t.Errorf("%+v has an ID of its own", c)
		}
	}
	if id(o, observe.Change{Verb: event.Deleted, Old: at("u", "1")}) != id(another, observe.Change{Verb: event.Deleted, Old: at("u", "7"), Missed: true}) {
		t.Error("an object is deleted once, and has two IDs for it")
	}
	// One that left a selection may come again and leave again.
	part := observe.New(observe.Options{Kind: pods, Selected: true})
	if id(part, observe.Change{Verb: event.Deleted, Old: at("u", "1")}) == id(part, observe.Change{Verb: event.Deleted, Old: at("u", "7")}) {
		t.Error("an object that left a selection twice has one ID for it")
	}
	seen := map[string]bool{}
	for _, c := range []observe.Change{
		same[0],
		{Verb: event.Created, New: at("u", "2")},
		{Verb: event.Existing, New: at("u", "2")},
		{Verb: event.Replaced, New: at("u", "2")},
		{Verb: event.Deleted, Old: at("u", "2")},
		{Verb: event.Updated, New: at("u", "3")},
		{Verb: event.Updated, New: at("v", "2")},
		{Verb: event.Updated, New: at("", "2")},
	} {
		seen[id(o, c)] = true
	}
	seen[id(observer(t, nodes), same[0])] = true
	if len(seen) != 9 {
		t.Errorf("9 changes have %d IDs", len(seen))
	}
}

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestInputsAreNotWrittenTo(t *testing.T) {
	o := observer(t, secrets, "*:metadata.labels.a")
	oldText := `{"metadata":{"uid":"u","labels":{"a":"b"},"managedFields":[{"manager":"m"}]},"data":{"a":"eA=="}}`
	newText := `{"metadata":{"uid":"u","labels":{"a":"c"},"managedFields":[{"manager":"n"}]},"data":{"a":"eB==","b":""}}`
	from, to := parse(t, oldText), parse(t, newText)
	want := jsonOf(t, from) + jsonOf(t, to)
	var wg sync.WaitGroup
	for range 4 { // the race detector sees a write among these reads
		wg.Go(func() { o.Event(observe.Change{Verb: event.Updated, Old: from, New: to}) })
	}
	wg.Wait()
	if got := jsonOf(t, from) + jsonOf(t, to); got != want {
		t.Errorf("from %s\nto %s", want, got)
	}
}

func pod(t testing.TB) map[string]any {
	t.Helper()
	data, err := os.ReadFile("../diff/testdata/pod.json")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

func unready(t testing.TB) map[string]any {
	p := pod(t)
	p["metadata"].(map[string]any)["resourceVersion"] = "482914"
	status := p["status"].(map[string]any)
	c := status["conditions"].([]any)[2].(map[string]any)
	c["status"], c["lastTransitionTime"] = "False", "2026-11-20T09:00:00Z"
	status["containerStatuses"].([]any)[0].(map[string]any)["ready"] = false
	p["metadata"].(map[string]any)["managedFields"].([]any)[1].(map[string]any)["time"] = "2026-11-20T09:00:00Z"
	return p
}

func TestAPodThatBecomesUnready(t *testing.T) {
	e := observer(t, pods).Event(observe.Change{Verb: event.Updated, Old: pod(t), New: unready(t)})
	want := "[status]; status replace status.conditions[type=Ready].lastTransitionTime; status replace status.conditions[type=Ready].status; status replace status.containerStatuses[name=web].ready"
	if got := told(e); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(e.Authors) != 1 || e.Authors[0].Manager != "kubelet" || e.Authors[0].Subresource != "status" {
		t.Errorf("authors: %+v", e.Authors)
	}
}

func TestSettledIsAnUpdate(t *testing.T) {
	e := observer(t, pods).Event(observe.Change{Verb: event.Settled, Old: pod(t), New: unready(t)})
	if !slices.Equal(e.Classes, []event.Class{event.Status}) {
		t.Errorf("%v", e.Classes)
	}
}

func BenchmarkEvent(b *testing.B) {
	from, to := pod(b), unready(b)
	for _, c := range []struct {
		name string
		hide []string
	}{{"pod", nil}, {"pod with a rule", []string{"pods:spec.containers[*].env[*].value"}}} {
		b.Run(c.name, func(b *testing.B) {
			o := observer(b, pods, c.hide...)
			b.ReportAllocs()
			for b.Loop() {
				o.Event(observe.Change{Verb: event.Updated, Old: from, New: to})
			}
		})
	}
}

func TestAWholeMapOfHiddenValuesIsMarkedAfterARestartToo(t *testing.T) {
	kind := event.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	secret := func(version string, data map[string]any) map[string]any {
		o := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "namespace": "n", "uid": "u", "resourceVersion": version}}
		if data != nil {
			o["data"] = data
		}
		return o
	}
	o := observe.New(observe.Options{Kind: kind, Key: []byte("key")})
	before, after := secret("1", nil), secret("2", map[string]any{"password": "eA=="})
	live := o.Event(observe.Change{Verb: event.Updated, Old: before, New: after})
	kept := o.Event(observe.Change{Verb: event.Updated, Old: o.Keep(before), Kept: true, New: after, Missed: true})
	if !live.Fields[0].Hidden || !kept.Fields[0].Hidden {
		t.Errorf("hidden: %v live, %v after a restart", live.Fields[0].Hidden, kept.Fields[0].Hidden)
	}
}
