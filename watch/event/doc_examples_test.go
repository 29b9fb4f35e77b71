// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

var (
	deployments = event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}
	secrets     = event.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	pods        = event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	nodes       = event.Kind{Version: "v1", Kind: "Node", Resource: "nodes"}
	web         = object.Key{Namespace: "team-a", Name: "web"}
	login       = object.Key{Namespace: "team-a", Name: "login"}
)

func at(hms string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-03-04T"+hms+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// examples are the events of docs/watch-events.md.
func examples() map[string]*event.Event {
	content := []event.Class{event.Content}
	const uid = "0e8f8f8e-7c5f-4a57-9d3e-2f8f1f5b6c11"
	return map[string]*event.Event{
		"updated": {
			ID: "3f0c8f6f2a4d4bd1", Time: at("15:04:05.123").In(time.FixedZone("east", 3600)), Verb: event.Updated,
			Kind: deployments, Key: web, UID: "5b0c2f3e-0f51-4b52-8a1b-6a4b4b1c7f10", Version: "4711",
			Classes: []event.Class{event.Content, event.Metadata},
			Fields: []event.Field{
				{Path: "metadata.labels.tier", Op: event.Add, To: "web", Class: event.Metadata},
				{Path: "spec.replicas", Op: event.Replace, From: int64(1), To: int64(3), Class: event.Content},
			},
			Authors: []event.Author{{
				Manager: "kubectl", Operation: "Update", Subresource: "scale",
				Time: at("15:04:05").In(time.FixedZone("east", 3600)),
			}},
			Summary: "label tier=web added, replicas 1 → 3",
		},
		"deleted": {
			ID: "9a77c1e2b3d45f60", Time: at("15:05:00"), Verb: event.Deleted, Kind: secrets, Key: login, UID: uid,
			Version: "4702", Classes: content, Missed: true, Stale: true, Summary: "deleted",
		},
		"hidden": {
			ID: "c0ffee0012345678", Time: at("15:06:00"), Verb: event.Updated, Kind: secrets, Key: login, UID: uid,
			Version: "4720", Classes: content,
			Fields: []event.Field{{
				Path: "data.password", Op: event.Replace, From: "(hidden)", To: "(hidden)", Class: event.Content, Hidden: true,
			}},
			Authors: []event.Author{{Manager: "kubectl", Operation: "Apply", Time: at("15:06:00")}},
			Summary: "data.password changed",
		},
		"settled": {
			ID: "1d2c3b4a59687760", Time: at("15:07:08"), Verb: event.Settled, Kind: deployments, Key: web, Version: "4799",
			Classes: []event.Class{event.Status},
			Fields: []event.Field{{
				Path: "status.readyReplicas", Op: event.Replace, From: int64(7), To: int64(10), Class: event.Status,
			}},
			Merged: 12, Since: at("15:07:00"), Summary: "12 changes in 8 s, now 10/10 ready",
			Old: map[string]any{"status": map[string]any{"readyReplicas": int64(7)}},
			New: map[string]any{"status": map[string]any{"readyReplicas": int64(10)}},
		},
		"failing": {
			ID: "5e1f0a9b8c7d6e5f", Time: at("15:09:00"), Verb: event.Failing, Kind: pods, Key: object.Key{Namespace: "team-a", Name: "web-5d8f6"},
			UID: "7c0a5b1e-2f3d-4a6b-8c9d-0e1f2a3b4c5d", Version: "4822", Classes: []event.Class{event.Troubled},
			Authors: []event.Author{{Manager: "kubelet", Operation: "Update", Subresource: "status", Time: at("15:09:00")}},
			Trouble: []event.Trouble{{
				About: "container web", Reason: "CrashLoopBackOff", Message: "OOMKilled", ExitCode: 137, Restarts: 3, Since: at("15:08:21"),
			}},
			Summary: "container web CrashLoopBackOff: exit 137, 3 restarts, OOMKilled",
		},
		"caused": {
			ID: "2b9d8c7e6f5a4b3c", Time: at("15:09:30"), Verb: event.Created, Kind: pods, Key: object.Key{Namespace: "team-a", Name: "web-7f9c4"},
			UID: "7c0a5b1e-2f3d-4a6b-8c9d-0e1f2a3b4c5e", Version: "4830", Classes: content,
			Authors: []event.Author{{Manager: "setpoint", Operation: "Update", Time: at("15:09:30")}},
			Cause: &event.Cause{Controller: "replicaset-controller", Run: 412, Object: "Deployment.apps team-a/web", Verb: "updated",
				Change: "image app:1 → app:2"},
			Summary: "created",
		},
		"existing": {
			ID: "77aa88bb99cc00dd", Time: at("15:08:00"), Verb: event.Existing, Kind: nodes, Key: object.Key{Name: "node-1"},
			Version: "12", Classes: content, Summary: "existing",
		},
	}
}

func readDoc(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compact(t *testing.T, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheExamplesOfTheDocAreWhatIsEncoded(t *testing.T) {
	found := regexp.MustCompile("(?s)<!-- (example|cloudevent): (\\w+) -->\n```json\n(.*?)```").
		FindAllSubmatch(readDoc(t, "watch-events.md"), -1)
	if len(found) != len(examples()) {
		t.Fatalf("the doc has %d examples, want %d", len(found), len(examples()))
	}
	for _, m := range found {
		form, name, text := string(m[1]), string(m[2]), m[3]
		t.Run(name, func(t *testing.T) {
			e := examples()[name]
			if e == nil {
				t.Fatalf("there is no event %q", name)
			}
			got, err := event.Encode(e, true)
			if form == "cloudevent" {
				got, err = event.CloudEvent(e, "https://cluster.example.com/prod", true)
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := compact(t, text); string(got) != want {
				t.Errorf("encoded:\n%s\nthe doc has:\n%s", got, want)
			}
		})
	}
}

// namesOf returns the paths of all keys of a JSON value that the schema describes; what
// objects and fields hold is no concern of it.
func namesOf(v any, at string) []string {
	var names []string
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			path := strings.TrimPrefix(at+"."+key, ".")
			names = append(names, path)
			if !slices.Contains([]string{"old", "new", "fields[].from", "fields[].to"}, path) {
				names = append(names, namesOf(value, path)...)
			}
		}
	case []any:
		for _, value := range v {
			names = append(names, namesOf(value, at+"[]")...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inSchema returns the paths of all properties of a JSON Schema.
func inSchema(v any, at string) []string {
	node, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	names := inSchema(node["items"], at+"[]")
	properties, _ := node["properties"].(map[string]any)
	for key, value := range properties {
		path := strings.TrimPrefix(at+"."+key, ".")
		names = append(append(names, path), inSchema(value, path)...)
	}
	slices.Sort(names)
	return names
}

func TestSchemaAndDocNameTheFieldsThatAreEncoded(t *testing.T) {
	var schema any
	if err := json.Unmarshal(readDoc(t, "watch-events.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	var encoded []string
	for _, e := range examples() {
		b, err := event.Encode(e, true)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, namesOf(v, "")...)
	}
	slices.Sort(encoded)
	encoded = slices.Compact(encoded)
	if got := inSchema(schema, ""); !reflect.DeepEqual(got, encoded) {
		t.Errorf("the schema has\n%q\nencoded are\n%q", got, encoded)
	}
	doc := string(readDoc(t, "watch-events.md"))
	for _, name := range encoded {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("the doc does not describe %s", name)
		}
	}
	for _, verb := range event.Verbs() {
		if !strings.Contains(doc, "| `"+string(verb)+"` |") {
			t.Errorf("the doc does not describe the verb %s", verb)
		}
	}
}
