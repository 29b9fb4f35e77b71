// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

type obj = map[string]any

func list(values ...any) []any { return values }

var (
	pods        = event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	deployments = event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}
	configMaps  = event.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}
	secrets     = event.Kind{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	nodes       = event.Kind{Version: "v1", Kind: "Node", Resource: "nodes"}
	widgets     = event.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true}
)

// an makes an event. Fields are content unless they begin with status.
func an(verb event.Verb, kind event.Kind, key string, fields ...event.Field) *event.Event {
	k := object.Key{Name: key}
	if namespace, name, ok := strings.Cut(key, "/"); ok {
		k = object.Key{Namespace: namespace, Name: name}
	}
	e := &event.Event{
		ID: "1f", Time: time.Date(2026, 3, 4, 15, 4, 5, 123e6, time.UTC), Verb: verb, Kind: kind, Key: k,
		Version: "7", Classes: []event.Class{event.Content}, Fields: fields,
	}
	for i := range fields {
		fields[i].Class = event.Content
		if strings.HasPrefix(fields[i].Path, "status") {
			fields[i].Class = event.Status
		}
	}
	return e
}

func with(e *event.Event, change func(e *event.Event)) *event.Event {
	change(e)
	return e
}

func replaced(path string, from, to any) event.Field {
	return event.Field{Path: path, Op: event.Replace, From: from, To: to}
}

func added(path string, to any) event.Field { return event.Field{Path: path, Op: event.Add, To: to} }

func removed(path string, from any) event.Field {
	return event.Field{Path: path, Op: event.Remove, From: from}
}

// day is some events of a day, as a person would see them.
func day() []*event.Event {
	pod := obj{
		"metadata": obj{"name": "web-1", "creationTimestamp": "2026-03-04T12:04:05Z"},
		"spec":     obj{"nodeName": "node-1", "containers": list(obj{"name": "web", "image": "nginx:1.27"})},
		"status":   obj{"phase": "Running"},
	}
	template := obj{"spec": obj{"containers": list(obj{"name": "web", "image": "nginx:1.27"}, obj{"name": "log", "image": "vector:0.40"})}}
	return []*event.Event{
		with(an(event.Existing, pods, "team-a/web-1"), func(e *event.Event) { e.New = pod }),
		with(an(event.Created, deployments, "team-a/web"), func(e *event.Event) {
			e.New = obj{"spec": obj{"replicas": int64(3), "template": template}}
			e.Authors = []event.Author{{Manager: "kubectl-create", Operation: "Update"}}
		}),
		with(an(event.Updated, deployments, "team-a/web",
			replaced("metadata.generation", int64(1), int64(2)), replaced("spec.replicas", int64(1), int64(3))), func(e *event.Event) {
			e.Authors = []event.Author{{Manager: "kubectl-edit", Operation: "Update", Subresource: "scale"}}
		}),
		an(event.Updated, deployments, "team-a/web",
			added("metadata.labels.tier", "web"),
			replaced("spec.template.spec.containers[name=web].image", "nginx:1.27", "nginx:1.28")),
		with(an(event.Updated, pods, "team-a/web-1",
			added("status.conditions[type=Initialized]", obj{"type": "Initialized", "status": "True"}),
			replaced("status.conditions[type=Ready].lastTransitionTime", "a", "b"),
			replaced("status.conditions[type=Ready].reason", "A", "B"),
			replaced("status.conditions[type=Ready].status", "True", "False"),
			replaced("status.phase", "Pending", "Running")), func(e *event.Event) {
			e.New = obj{"status": obj{"conditions": list(obj{"type": "Ready", "status": "False", "reason": "ContainersNotReady"})}}
			e.Authors = []event.Author{{Manager: "kubelet", Operation: "Update", Subresource: "status"}}
		}),
		with(an(event.Updated, pods, "team-a/web-1",
			replaced("status.containerStatuses[name=web].ready", true, false),
			replaced("status.containerStatuses[name=web].restartCount", int64(1), int64(2)),
			removed("status.containerStatuses[name=web].state.running", obj{}),
			added("status.containerStatuses[name=web].state.waiting", obj{"reason": "CrashLoopBackOff"})), func(e *event.Event) {
			e.New = obj{"status": obj{"containerStatuses": list(obj{"name": "web", "state": obj{"waiting": obj{"reason": "CrashLoopBackOff"}}})}}
		}),
		with(an(event.Failing, pods, "team-a/web-1"), func(e *event.Event) {
			e.Classes = []event.Class{event.Troubled}
			e.Trouble = []event.Trouble{{About: "container web", Reason: "CrashLoopBackOff", ExitCode: 1, Restarts: 2, Since: e.Time}}
			e.Summary = "container web CrashLoopBackOff: exit 1, 2 restarts"
			e.Authors = []event.Author{{Manager: "kubelet", Operation: "Update", Subresource: "status"}}
		}),
		with(an(event.Resolved, pods, "team-a/web-1"), func(e *event.Event) {
			e.Classes = []event.Class{event.Troubled}
			e.Trouble = []event.Trouble{{About: "container web", Reason: "CrashLoopBackOff", Restarts: 3, Since: e.Time.Add(-2 * time.Minute)}}
			e.Summary = "container web runs again after 3 restarts in 2 min"
		}),
		with(an(event.Updated, pods, "team-a/web-1",
			added("metadata.deletionGracePeriodSeconds", int64(30)), added("metadata.deletionTimestamp", "2026-03-04T15:04:35Z")), func(e *event.Event) {
			e.New = obj{"metadata": obj{"deletionGracePeriodSeconds": int64(30)}}
		}),
		with(an(event.Deleted, pods, "team-a/web-1"), func(e *event.Event) { e.Old = pod }),
		with(an(event.Deleted, configMaps, "a-namespace-with-a-long-name/and-a-name-that-is-longer-than-that"), func(e *event.Event) {
			e.Missed, e.Stale = true, true
		}),
		an(event.Replaced, pods, "team-a/web-0"),
		with(an(event.Settled, deployments, "team-a/web", replaced("status.readyReplicas", int64(7), int64(10))), func(e *event.Event) {
			e.Merged, e.Summary, e.Since = 12, "12 changes in 8 s, now 10/10 ready", e.Time.Add(-8*time.Second)
		}),
		with(an(event.Settled, deployments, "team-a/web",
			replaced("spec.template.spec.containers[name=web].image", "nginx:1.29", "nginx:1.30"), replaced("status.observedGeneration", int64(1), int64(2))), func(e *event.Event) {
			e.New = obj{"spec": obj{"template": obj{"spec": obj{"containers": list(obj{"name": "web"})}}}}
			e.Merged, e.Summary, e.Since = 14, "14 changes in 1 s, now 3/3 ready", e.Time.Add(-time.Second)
			e.Authors = []event.Author{{Manager: "kubectl-set", Operation: "Update"}}
		}),
		with(an(event.Updated, widgets, "team-a/big", replaced("spec.a", int64(1), int64(2)), replaced("spec.b", "x", "y"),
			removed("spec.c", obj{"a": int64(1)}), added("spec.d", list(int64(1), int64(2)))), func(e *event.Event) {
			e.Merged, e.Since = 3, e.Time.Add(-400*time.Millisecond)
		}),
		with(an(event.Updated, secrets, "team-a/login", replaced("data.password", "(hidden)", "(hidden)")), func(e *event.Event) {
			e.Fields[0].Hidden = true
		}),
		an(event.Updated, configMaps, "team-a/conf", replaced("data[nginx.conf]",
			"user www;\nworkers 1;\nerror_log a;\npid x;\nevents {\n\tn 1;\n}\n", "user www;\nworkers 1;\nerror_log a;\npid x;\nevents {\n\tn 2;\n}\n")),
		an(event.Updated, nodes, "node-1", added("spec.unschedulable", true)),
		with(an(event.Updated, configMaps, "team-a/evil\x1b[2J", added("data.x", "\x1b[31mred\r\nBEL\a \u202eabc \u009b31m")), func(e *event.Event) {
			e.Authors = []event.Author{{Manager: "ku\x1b]0;title\abe", Operation: "Update"}}
		}),
		an(event.Updated, configMaps, "team-a/größe", replaced("data.name", "日本語", "größer")),
	}
}

func write(t *testing.T, o Options, events ...*event.Event) string {
	t.Helper()
	var b strings.Builder
	w := New(&b, o)
	for _, e := range events {
		if err := w.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestADayInEachForm(t *testing.T) {
	for name, o := range map[string]Options{
		"text":         {},
		"text-narrow":  {Width: 100, Zone: time.FixedZone("east", 3600)},
		"text-colour":  {Color: true},
		"diff":         {Form: Diff},
		"diff-colour":  {Form: Diff, Color: true},
		"diff-objects": {Form: Diff, WithObjects: true},
		"json":         {Form: JSON},
		"yaml":         {Form: YAML, WithObjects: true},
		"cloudevents":  {Form: CloudEvents, Source: "https://cluster.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			got := write(t, o, day()...)
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("written:\n%s\nwant (go test -update writes it anew):\n%s", got, want)
			}
		})
	}
}
