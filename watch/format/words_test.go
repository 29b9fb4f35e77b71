// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
)

func TestWords(t *testing.T) {
	updated := func(kind event.Kind, fields ...event.Field) *event.Event {
		return an(event.Updated, kind, "n/x", fields...)
	}
	created := func(kind event.Kind, o obj) *event.Event {
		return with(an(event.Created, kind, "n/x"), func(e *event.Event) { e.New = o })
	}
	long := "registry.example.com/a/very/long/path/that/nobody/reads/web:1.2.3-with-a-suffix"
	for name, test := range map[string]struct {
		e    *event.Event
		want string
	}{
		"a label with a long name":   {updated(pods, replaced("metadata.labels[app.kubernetes.io/name]", "a", "b")), "label app.kubernetes.io/name a → b"},
		"a label gone":               {updated(pods, removed("metadata.labels.tier", "web")), "label tier=web removed"},
		"the first labels":           {updated(pods, added("metadata.labels", obj{"b": "2", "a": "1"})), "labels a=1 b=2 added"},
		"the last annotation":        {updated(pods, removed("metadata.annotations", obj{"a": "1"})), "annotation a=1 removed"},
		"a hidden annotation":        {updated(pods, event.Field{Path: "metadata.annotations.token", Op: event.Add, To: "(hidden)", Hidden: true}), "annotation token added"},
		"a finalizer":                {updated(pods, added("metadata.finalizers[0]", "example.com/a")), "finalizer example.com/a added"},
		"a finalizer gone":           {updated(pods, removed("metadata.finalizers[1]", "example.com/a")), "finalizer example.com/a removed"},
		"deletion with a finalizer":  {with(updated(pods, added("metadata.deletionTimestamp", "x")), func(e *event.Event) { e.New = obj{"metadata": obj{"finalizers": list("a.b/c")}} }), "deletion requested, waits for [a.b/c]"},
		"a deletion's grace is over": {with(updated(pods, replaced("metadata.deletionTimestamp", "x", "y")), func(e *event.Event) { e.New = obj{"metadata": obj{"deletionGracePeriodSeconds": int64(0)}} }), "grace is over"},
		"a deletion hurried":         {with(updated(pods, replaced("metadata.deletionTimestamp", "x", "y")), func(e *event.Event) { e.New = obj{"metadata": obj{"deletionGracePeriodSeconds": int64(5)}} }), "grace changed to 5 s"},
		"a deletion moved":           {updated(pods, replaced("metadata.deletionTimestamp", "x", "y")), "deletion moved"},
		"a generation alone":         {updated(pods, replaced("metadata.generation", int64(1), int64(2))), "metadata.generation 1 → 2"},
		"an owner":                   {updated(pods, added("metadata.ownerReferences[uid=1]", obj{"kind": "X"})), "metadata.ownerReferences[uid=1] {1 field}"},
		"a condition's reason":       {updated(widgets, replaced("status.conditions[type=Ready].reason", "A", "B"), replaced("status.conditions[type=Ready].message", "a", "b")), "Ready A → B"},
		"a condition's message":      {updated(widgets, replaced("status.conditions[type=Ready].message", "a", "it is broken")), "Ready: it is broken"},
		"a condition gone":           {updated(widgets, removed("status.conditions[type=Ready]", obj{})), "Ready removed"},
		"a condition that is bad":    {updated(widgets, added("status.conditions[type=Ready]", obj{"status": "False", "reason": "Broken"})), "Ready False (Broken)"},
		"an image that cannot be pulled": {with(updated(pods,
			added("status.conditions[type=ContainersReady]", obj{"type": "ContainersReady", "status": "False", "reason": "ContainersNotReady"}),
			added("status.conditions[type=Initialized]", obj{"type": "Initialized", "status": "True"}),
			added("status.conditions[type=PodReadyToStartContainers]", obj{"type": "PodReadyToStartContainers", "status": "True"}),
			added("status.conditions[type=Ready]", obj{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}),
			added("status.containerStatuses", list(obj{"name": "web", "state": obj{"waiting": obj{"reason": "ImagePullBackOff"}}})),
			added("status.hostIP", "10.0.0.1")), func(e *event.Event) { e.Classes = []event.Class{event.Status} }),
			"web waiting: ImagePullBackOff, Ready False (ContainersNotReady), ContainersReady False (ContainersNotReady), 2 more"},
		"a Node that is silent": {with(updated(nodes,
			replaced("status.conditions[type=DiskPressure].status", "False", "Unknown"), replaced("status.conditions[type=MemoryPressure].status", "False", "Unknown"),
			replaced("status.conditions[type=PIDPressure].status", "False", "Unknown"), replaced("status.conditions[type=Ready].status", "True", "Unknown")), func(e *event.Event) {
			e.New = obj{"status": obj{"conditions": list(obj{"type": "DiskPressure", "status": "Unknown"}, obj{"type": "MemoryPressure", "status": "Unknown"},
				obj{"type": "PIDPressure", "status": "Unknown"}, obj{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"})}}
		}), "Ready True → Unknown (NodeStatusUnknown), DiskPressure False → Unknown, MemoryPressure False → Unknown, 1 more"},
		"a Pod that becomes ready": {with(updated(pods,
			replaced("status.conditions[type=ContainersReady].status", "False", "True"), replaced("status.conditions[type=Initialized].status", "False", "True"),
			replaced("status.conditions[type=PodReadyToStartContainers].status", "False", "True"), replaced("status.conditions[type=Ready].status", "False", "True"),
			replaced("status.phase", "Pending", "Running")), func(e *event.Event) {
			e.New = obj{"status": obj{"conditions": list(obj{"type": "Ready", "status": "True"}, obj{"type": "ContainersReady", "status": "True"},
				obj{"type": "Initialized", "status": "True"}, obj{"type": "PodReadyToStartContainers", "status": "True"})}}
		}), "Ready False → True, phase Pending → Running, ContainersReady False → True, 2 more"},
		"the first conditions, the bad one first": {updated(pods, added("status.conditions", list(obj{"type": "Initialized", "status": "True"},
			obj{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}))), "Ready False (ContainersNotReady), Initialized True"},
		"what began is in the line of what settled": {with(an(event.Settled, deployments, "n/x", replaced("spec.template.spec.containers[name=web].image", "r.io:5000/web:1.29", "r.io:5000/web:1.30"),
			replaced("spec.replicas", int64(2), int64(3)), replaced("status.readyReplicas", int64(2), int64(3))), func(e *event.Event) {
			e.Summary = "14 changes in 1 s, now 3/3 ready"
			e.New = obj{"spec": obj{"template": obj{"spec": obj{"containers": list(obj{"name": "web"})}}}}
		}), "image r.io:5000/web:1.29 → 1.30, replicas 2 → 3, 14 changes in 1 s, now 3/3 ready"},
		"one of two containers settled": {with(an(event.Settled, deployments, "n/x", replaced("spec.template.spec.containers[name=web].image", "a/web:1", "b/web:2")), func(e *event.Event) {
			e.Summary = "now 3/3 ready"
			e.New = obj{"spec": obj{"template": obj{"spec": obj{"containers": list(obj{"name": "web"}, obj{"name": "log"})}}}}
		}), "image of web a/web:1 → b/web:2, now 3/3 ready"},
		"an image with a digest settled": {with(an(event.Settled, deployments, "n/x", replaced("spec.template.spec.containers[name=web].image", "localhost:5000/web", "localhost:5000/other")), func(e *event.Event) {
			e.Summary = "now 3/3 ready"
		}), "image of web localhost:5000/web → localhost:5000/other, now 3/3 ready"},
		"a summary that says it already": {with(updated(deployments, replaced("spec.replicas", int64(2), int64(3))), func(e *event.Event) { e.Summary = "replicas 2 → 3" }), "replicas 2 → 3"},
		"what is there, and what is wrong with it": {with(an(event.Existing, pods, "n/x"), func(e *event.Event) {
			e.New = obj{"spec": obj{"nodeName": "node-1", "containers": list(obj{"image": "nginx:x"})}, "status": obj{"phase": "Pending",
				"containerStatuses": list(obj{"name": "web", "image": "nginx:x", "state": obj{"waiting": obj{"reason": "ErrImagePull"}}})}}
		}), "container web ErrImagePull: nginx:x, image nginx:x, on node-1, Pending"},
		"a healthy Pod that is gone": {with(an(event.Deleted, pods, "n/x"), func(e *event.Event) {
			e.Old = obj{"metadata": obj{"deletionTimestamp": "2026-03-04T15:04:04Z", "deletionGracePeriodSeconds": int64(0)}, "spec": obj{"nodeName": "node-1"},
				"status": obj{"phase": "Failed", "containerStatuses": list(obj{"state": obj{"terminated": obj{"exitCode": int64(143), "startedAt": "2026-03-04T12:00:00Z", "finishedAt": "2026-03-04T15:04:04Z"}}})}}
		}), "was Running on node-1"},
		"a healthy Pod that ended a second before it was removed": {with(an(event.Deleted, pods, "n/x"), func(e *event.Event) {
			e.Old = obj{"metadata": obj{"deletionTimestamp": "2026-03-04T15:04:06Z", "deletionGracePeriodSeconds": int64(0)}, "spec": obj{"nodeName": "node-1", "restartPolicy": "Always"},
				"status": obj{"phase": "Failed", "containerStatuses": list(obj{"state": obj{"terminated": obj{"exitCode": int64(143), "startedAt": "2026-03-04T12:00:00Z", "finishedAt": "2026-03-04T15:04:05Z"}}})}}
		}), "was Running on node-1"},
		"a Pod that is gone and never ran": {with(an(event.Deleted, pods, "n/x"), func(e *event.Event) {
			e.Old = obj{"metadata": obj{"deletionTimestamp": "2026-03-04T15:04:04Z", "deletionGracePeriodSeconds": int64(0)},
				"status": obj{"phase": "Failed", "containerStatuses": list(obj{"state": obj{"terminated": obj{"exitCode": int64(137), "reason": "ContainerStatusUnknown", "startedAt": nil, "finishedAt": "2026-03-04T15:04:04Z"}}})}}
		}), "was Pending"},
		"a Pod that had failed before it was deleted": {with(an(event.Deleted, pods, "n/x"), func(e *event.Event) {
			e.Old = obj{"metadata": obj{"deletionTimestamp": "2026-03-04T15:04:34Z", "deletionGracePeriodSeconds": int64(30)},
				"status": obj{"phase": "Failed", "containerStatuses": list(obj{"state": obj{"terminated": obj{"exitCode": int64(1), "finishedAt": "2026-03-04T15:04:03Z"}}})}}
		}), "was Failed"},
		"a heartbeat": {with(updated(nodes, replaced("status.conditions[type=Ready].lastHeartbeatTime", "a", "b")), func(e *event.Event) {
			e.Classes = []event.Class{event.Heartbeat}
		}), "heartbeat"},
		"nothing to be seen":    {with(updated(pods), func(e *event.Event) { e.Classes = []event.Class{event.Version} }), "nothing but the resourceVersion"},
		"there and back":        {with(updated(pods), func(e *event.Event) { e.Merged = 2 }), "changed, and changed back"},
		"not known":             {updated(pods), "what changed is not known"},
		"a value set":           {updated(widgets, added("spec.size", int64(3))), "spec.size 3"},
		"a value gone":          {updated(widgets, removed("spec.size", int64(3))), "spec.size removed (was 3)"},
		"a value null":          {updated(widgets, replaced("spec.size", int64(3), nil)), "spec.size 3 → null"},
		"a text empty":          {updated(widgets, replaced("spec.note", "a", "")), `spec.note a → ""`},
		"a text with an arrow":  {updated(widgets, replaced("spec.note", "a → b", " c")), `spec.note "a → b" → " c"`},
		"a fraction":            {updated(widgets, replaced("spec.size", 0.5, true)), "spec.size 0.5 → true"},
		"subtrees":              {updated(widgets, replaced("spec.x", obj{"a": int64(1)}, list(obj{}))), "spec.x changed"},
		"a subtree for a value": {updated(widgets, replaced("spec.x", int64(1), list(obj{}, obj{}))), "spec.x 1 → [2 items]"},
		"three of many": {updated(widgets, replaced("spec.replicas", int64(1), int64(2)), replaced("spec.a", int64(1), int64(2)), replaced("spec.b", int64(1), int64(2)),
			replaced("spec.c", int64(1), int64(2))), "replicas 1 → 2, spec.a 1 → 2, spec.b 1 → 2, 1 more"},
		"many without words": {updated(widgets, added("spec.alpha", int64(1)), added("spec.beta", int64(1)), added("spec.gamma", int64(1)), added("spec.delta", int64(1)),
			added("spec.epsilon", int64(1)), added("spec.zeta", int64(1)), added("spec.eta", int64(1))), "7 fields: spec.alpha, spec.beta, spec.gamma, spec.delta, spec.epsilon,…"},
		"a long image keeps its end": {updated(pods, replaced("spec.containers[name=web].image", long, "a")),
			"image of web registry.example.com/a/very/l…/reads/web:1.2.3-with-a-suffix → a"},
		"a container":           {updated(deployments, added("spec.template.spec.containers[name=log]", obj{"image": "vector:1"})), "container log added: image vector:1"},
		"a container gone":      {updated(deployments, removed("spec.template.spec.containers[name=log]", obj{})), "container log removed"},
		"containers turned":     {updated(deployments, replaced("spec.template.spec.containers[order]", list("a", "b"), list("b", "a"))), "order of containers changed"},
		"a variable":            {updated(deployments, replaced("spec.template.spec.containers[name=web].env[name=LOG].value", "info", "debug")), "env LOG of web info → debug"},
		"a variable added":      {updated(deployments, added("spec.template.spec.containers[name=web].env[name=LOG]", obj{})), "env LOG of web added"},
		"a variable gone":       {updated(deployments, removed("spec.template.spec.containers[name=web].env[name=LOG]", obj{})), "env LOG of web removed"},
		"memory":                {updated(deployments, replaced("spec.template.spec.containers[name=web].resources.limits.memory", "1Gi", "2Gi")), "limits memory of web 1Gi → 2Gi"},
		"a name that is quoted": {updated(deployments, replaced(`spec.template.spec.containers[name="a.b]c"].image`, "a", "b")), "image of a.b]c a → b"},
		"a container that ended": {with(updated(pods, added("status.containerStatuses[name=web].state.terminated", obj{})), func(e *event.Event) {
			e.New = obj{"status": obj{"containerStatuses": list(obj{"name": "web", "state": obj{"terminated": obj{"reason": "OOMKilled", "exitCode": int64(137)}}})}}
		}), "web ended: OOMKilled, exit 137"},
		"a container that runs": {with(updated(pods, added("status.containerStatuses", list(obj{}))), func(e *event.Event) {}), "containers [1 item]"},
		"a Node uncordoned":     {updated(nodes, removed("spec.unschedulable", true)), "uncordoned"},
		"a Pod that got a node": {updated(pods, added("spec.nodeName", "node-1")), "scheduled on node-1"},
		"a Pod with a zone":     {updated(pods, added("metadata.labels[topology.kubernetes.io/zone]", "a"), added("spec.nodeName", "node-1")), "scheduled on node-1"},
		"a zone":                {updated(nodes, added("metadata.labels[topology.kubernetes.io/zone]", "a")), "label topology.kubernetes.io/zone=a added"},
		"a first revision": {updated(deployments, added("metadata.annotations", obj{"deployment.kubernetes.io/revision": "1"}),
			added("status.conditions", list(obj{"type": "Progressing", "status": "True", "reason": "New"}, obj{"type": "Available", "status": "False", "reason": "TooFew"}))),
			"revision 1"},
		"a revision": {updated(deployments, replaced("metadata.annotations[deployment.kubernetes.io/revision]", "1", "2"),
			removed("status.updatedReplicas", int64(3)), event.Field{Path: "status.conditions[order]", Op: event.Replace, From: list("a", "b"), To: list("b", "a"), Class: event.Status}),
			"revision 1 → 2"},
		"a status beside what it reports of": {updated(pods, added("spec.nodeName", "node-1"),
			added("status.conditions", list(obj{"type": "PodScheduled", "status": "True"}))), "scheduled on node-1"},
		"a status of another write": {with(updated(pods, added("spec.nodeName", "node-1"), replaced("status.phase", "Pending", "Running")), func(e *event.Event) {
			e.Merged = 2
		}), "scheduled on node-1, phase Pending → Running"},
		"a status beside noise": {updated(deployments, replaced("metadata.generation", int64(1), int64(2)), replaced("status.readyReplicas", int64(1), int64(2))), "ready 1 → 2"},
		"a ReplicaSet that is scaled": {updated(event.Kind{Group: "apps", Kind: "ReplicaSet"}, replaced("metadata.annotations[deployment.kubernetes.io/desired-replicas]", "2", "3"),
			replaced("spec.replicas", int64(2), int64(3))), "replicas 2 → 3"},
		"a taint":               {updated(nodes, added("spec.taints", list(obj{"key": "a.b/c", "effect": "NoSchedule"}))), "taint a.b/c:NoSchedule added"},
		"the last taints":       {updated(nodes, removed("spec.taints", list(obj{"key": "a", "value": "1", "effect": "NoExecute"}, obj{"key": "b", "effect": "NoSchedule"}))), "taints a=1:NoExecute b:NoSchedule removed"},
		"a file of a ConfigMap": {updated(configMaps, added("data[a.conf]", "a\nb\n")), "data.a.conf added, 2 lines"},
		"a file that grew":      {updated(configMaps, replaced("data[a.conf]", "a\nb\n", "a\nb\nc")), "data.a.conf changed, 2 lines → 3"},
		"a file gone":           {updated(configMaps, removed("data[a.conf]", "a\nb")), "data.a.conf removed, 2 lines"},
		"a key of a ConfigMap":  {updated(configMaps, replaced(`data["2"]`, "a", "b")), "data.2 a → b"},
		"a hidden key gone":     {updated(secrets, event.Field{Path: "data.password", Op: event.Remove, From: "(hidden)", Hidden: true}), "data.password removed"},

		"a Pod of two":            {created(pods, obj{"spec": obj{"containers": list(obj{"image": "a:1"}, obj{"image": "b:1"})}}), "images a:1 b:1"},
		"a ConfigMap":             {created(configMaps, obj{"data": obj{"b": "", "a": ""}}), "2 keys: a, b"},
		"a Secret":                {created(secrets, obj{"data": obj{"password": "(hidden)"}}), "1 key: password"},
		"a Service":               {created(event.Kind{Kind: "Service"}, obj{"spec": obj{"ports": list(obj{"port": int64(80)}, obj{"port": int64(443)})}}), "ClusterIP, ports 80 443"},
		"a CronJob":               {created(event.Kind{Group: "batch", Kind: "CronJob"}, obj{"spec": obj{"schedule": "* * * * *"}}), "schedule * * * * *"},
		"an Event":                {created(event.Kind{Kind: "Event"}, obj{"reason": "BackOff", "message": "it crashes"}), "BackOff: it crashes"},
		"what somebody owns":      {created(widgets, obj{"metadata": obj{"ownerReferences": list(obj{"kind": "Shop", "name": "one"})}}), "of Shop one"},
		"what nobody knows":       {created(widgets, obj{}), ""},
		"without a state":         {created(widgets, nil), ""},
		"gone, with replicas":     {with(an(event.Deleted, deployments, "n/x"), func(e *event.Event) { e.Old = obj{"spec": obj{"replicas": int64(3)}} }), "had replicas 3"},
		"an evicted Pod":          {with(an(event.Deleted, pods, "n/x"), func(e *event.Event) { e.Old = obj{"status": obj{"phase": "Failed", "reason": "Evicted"}} }), "was Failed: Evicted"},
		"gone as soon as it came": {with(an(event.Deleted, pods, "n/x"), func(e *event.Event) { e.Summary = "created and deleted again" }), "created and deleted again"},
		"replaced by another":     {an(event.Replaced, deployments, "n/x", replaced("spec.replicas", int64(1), int64(2))), "another object of this name: replicas 1 → 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Words(test.e); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestAuthors(t *testing.T) {
	for want, authors := range map[string][]event.Author{
		"":                          nil,
		"helm":                      {{Manager: "helm"}},
		"kubectl scale":             {{Manager: "kubectl", Operation: "Update", Subresource: "scale"}},
		"kubectl edit/scale":        {{Manager: "kubectl-edit", Subresource: "scale"}},
		"kubectl apply":             {{Manager: "kubectl-client-side-apply", Operation: "Update"}},
		"kubectl apply/status":      {{Manager: "kubectl", Operation: "Apply", Subresource: "status"}},
		"kubectl":                   {{Manager: "kubectl", Operation: "Update"}},
		"a, b/status, 2 more":       {{Manager: "a"}, {Manager: "b", Subresource: "status"}, {Manager: "c"}, {Manager: "d"}},
		`evil\x1b[2J\u202e, \xff\n`: {{Manager: "evil\x1b[2J\u202e"}, {Manager: "\xff\n"}},
	} {
		if got := Authors(&event.Event{Authors: authors}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A program that reads events must not make words of the fields itself.
func TestAnEventForProgramsHasASummary(t *testing.T) {
	changed := an(event.Updated, deployments, "n/x", replaced("spec.replicas", int64(1), int64(2)))
	for want, e := range map[string]*event.Event{
		"replicas 1 → 2": changed,
		"created":        an(event.Created, widgets, "n/x"),
		"12 changes":     {Verb: event.Settled, Kind: deployments, Summary: "12 changes"},
	} {
		for _, form := range []Form{JSON, CloudEvents, YAML} {
			var out bytes.Buffer
			if err := New(&out, Options{Form: form}).Write(e); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.ReplaceAll(out.String(), `"`, ""), "summary:"+strings.Repeat(" ", spaces(form))+want) {
				t.Errorf("%s of %q: %s", form, want, &out)
			}
		}
	}
	if changed.Summary != "" {
		t.Error("the event has changed")
	}
}

// spaces is how many spaces a form writes behind a key.
func spaces(f Form) int {
	if f == YAML {
		return 1
	}
	return 0
}

func TestDurations(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0.0 s": -time.Second, "0.4 s": 400 * time.Millisecond, "8 s": 8 * time.Second, "12 min": 12 * time.Minute, "3 h": 3 * time.Hour, "5 d": 5 * 24 * time.Hour,
	} {
		if got := duration(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
