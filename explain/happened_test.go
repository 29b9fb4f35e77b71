// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
)

// story is a history for tests: its clock, its runs and its objects.
type story struct {
	at    time.Time
	facts explain.NamespaceFacts
}

func newStory() *story {
	return &story{at: now.Add(-5 * time.Minute), facts: explain.NamespaceFacts{
		Now: now, Since: now.Add(-5 * time.Minute), Namespace: "shop", Recorded: true,
	}}
}

func (s *story) after(d time.Duration) *story {
	s.at = s.at.Add(d)
	return s
}

// run adds a run with its cause.
func (s *story) run(controller string, of runs.Object, cause runs.Cause, writes ...runs.Write) {
	s.facts.Runs = append(s.facts.Runs, runs.Run{
		Number: uint64(len(s.facts.Runs) + 1), Controller: controller, Key: of.Namespace + "/" + of.Name, Object: of,
		Began: s.at, Last: s.at, Outcome: runs.Done, Runs: 1, Causes: []runs.Cause{cause}, Writes: writes,
	})
}

// has adds an object of the server, whose fields have owners.
func (s *story) has(o runs.Object, created time.Time, owners ...any) {
	s.facts.Objects = append(s.facts.Objects, explain.Known{Object: o, State: map[string]any{"metadata": map[string]any{
		"uid": string(o.UID), "creationTimestamp": created.Format(time.RFC3339), "managedFields": owners,
	}}})
}

func owner(manager, subresource string, at time.Time, fields ...string) map[string]any {
	tree := map[string]any{}
	for _, path := range fields {
		below := tree
		for name := range strings.SplitSeq(path, ".") {
			next, known := below["f:"+name].(map[string]any)
			if !known {
				next = map[string]any{}
				below["f:"+name] = next
			}
			below = next
		}
	}
	return map[string]any{"manager": manager, "operation": "Update", "subresource": subresource, "time": at.Format(time.RFC3339), "fieldsV1": tree}
}

func changed(o runs.Object, version string) runs.Cause {
	return runs.Cause{Source: "informer", Verb: "Updated", Object: o, Version: version}
}

func wrote(verb string, o runs.Object, version string, fields ...string) runs.Write {
	return runs.Write{Verb: verb, Object: o, Version: version, Fields: fields}
}

func shopObject(group, kind, name string) runs.Object {
	return runs.Object{Group: group, Kind: kind, Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}
}

// lines returns an answer as short text: a line a group, and indented one a change.
func lines(h explain.Happened) string {
	var b strings.Builder
	for _, g := range h.Groups {
		fmt.Fprintf(&b, "%s [%s] by %s: %d%s\n", g.Title, g.Code, actor(g.Actor, g.Probably), g.Total, mark(g.Trouble, " trouble"))
		for _, c := range g.Changes {
			fmt.Fprintf(&b, "  +%s %s %s%s%s\n", c.At.Sub(h.Since), actor(c.Actor, c.Probably), c.Text, mark(c.Deleted, " (deleted)"), mark(c.Trouble, " (trouble)"))
		}
	}
	for _, text := range h.Unknown {
		fmt.Fprintf(&b, "unknown: %s\n", text)
	}
	return b.String()
}

func actor(name string, probably bool) string { return mark(probably, "probably ") + name }

func mark(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// A rollout is one group: the edit of a user, what controllers did because of it, what the kubelet reported of its Pods,
// and the Events. What the server wrote for controllers is not counted twice.
func TestARolloutIsOneGroup(t *testing.T) {
	s := newStory()
	shop := shopObject("apps", "Deployment", "web")
	older, newer := shopObject("apps", "ReplicaSet", "web-1"), shopObject("apps", "ReplicaSet", "web-2")
	pod, last := shopObject("", "Pod", "web-2-x"), shopObject("", "Pod", "web-1-y")
	hour := now.Add(-time.Hour)
	s.after(time.Minute)
	edited := s.at
	s.run("deployment-controller", shop, changed(shop, "10"), wrote("create", newer, "11"), wrote("update", shop, "12", "metadata.annotations.revision"))
	s.after(time.Second).run("replicaset-controller", newer, changed(newer, "11"), wrote("create", pod, "13"))
	s.after(3*time.Second).run("replicaset-controller", newer, changed(pod, "14"), runs.Write{Verb: "update", Object: newer, Version: "15", Subresource: "status"})
	reported := s.at
	s.after(time.Second).run("deployment-controller", shop, changed(newer, "15"), wrote("update", older, "16", "spec.replicas"))
	s.after(time.Second).run("replicaset-controller", older, changed(older, "16"), wrote("delete", last, ""))
	s.has(shop, hour, owner("kubectl-set", "", edited, "spec.template.spec.containers"), owner("setpoint", "", edited, "metadata.annotations.revision"))
	s.has(pod, edited.Add(time.Second), owner("setpoint", "", edited.Add(time.Second), "spec.containers"), owner("kubelet", "status", reported, "status.phase"))
	s.facts.Events = []explain.NamespaceEvent{
		{About: pod, Event: explain.Event{Last: reported, Type: "Warning", Reason: "Unhealthy", Note: "probe failed", Count: 2, Source: "kubelet"}},
		{About: newer, Event: explain.Event{Last: reported, Type: "Normal", Reason: "SuccessfulCreate", Note: "said twice", Source: "replicaset-controller"}},
	}
	want := `rollout of web [Rollout] by probably kubectl-set: 9 trouble
  +1m6s replicaset-controller deleted Pod shop/web-1-y (deleted)
  +1m5s deployment-controller updated ReplicaSet.apps shop/web-1: spec.replicas
  +1m4s replicaset-controller updated the status of ReplicaSet.apps shop/web-2
  +1m4s probably kubelet changed the status of Pod shop/web-2-x: status.phase
  +1m4s kubelet Pod shop/web-2-x: Unhealthy: probe failed (trouble)
  +1m1s replicaset-controller created Pod shop/web-2-x
  +1m0s deployment-controller created ReplicaSet.apps shop/web-2
  +1m0s deployment-controller updated Deployment.apps shop/web: metadata.annotations.revision
  +1m0s probably kubectl-set changed Deployment.apps shop/web: spec.template.spec
`
	if got := lines(explain.WhatHappened(s.facts)); got != want {
		t.Errorf("what happened is\n%swant\n%s", got, want)
	}
}

// Each way in which something begins has its title, and its author where the facts have one.
func TestWhatBeganAGroup(t *testing.T) {
	var (
		web    = shopObject("apps", "Deployment", "web")
		config = shopObject("", "ConfigMap", "settings")
		pod    = shopObject("", "Pod", "web-x")
		hour   = now.Add(-time.Hour)
	)
	for name, c := range map[string]struct {
		tell func(*story)
		want string
	}{
		"nothing": {func(*story) {}, ""},
		"an edit that no controller noticed": {func(s *story) {
			s.has(config, hour, owner("kubectl-edit", "", s.at, "data.color"))
		}, `change of ConfigMap settings [Change] by probably kubectl-edit: 1
  +10s probably kubectl-edit changed ConfigMap shop/settings: data.color
`},
		"an edit before the time that is asked for": {func(s *story) {
			s.has(config, hour, owner("kubectl-edit", "", s.at.Add(-time.Minute), "data.color"))
		}, ""},
		"a new object": {func(s *story) {
			s.has(config, s.at, owner("kubectl-create", "", s.at, "data.color"))
		}, `creation of ConfigMap settings [Creation] by probably kubectl-create: 1
  +10s probably kubectl-create created ConfigMap shop/settings: data.color
`},
		"an object of another namespace": {func(s *story) {
			elsewhere := config
			elsewhere.Namespace = "other"
			s.has(elsewhere, s.at, owner("kubectl-create", "", s.at, "data.color"))
		}, ""},
		"a scale": {func(s *story) {
			s.run("deployment-controller", web, changed(web, "10"), wrote("update", shopObject("apps", "ReplicaSet", "web-1"), "11", "spec.replicas"))
			s.has(web, hour, owner("kubectl", "scale", s.at, "spec.replicas"))
		}, `scaling of web [Scaling] by probably kubectl: 2
  +10s deployment-controller updated ReplicaSet.apps shop/web-1: spec.replicas
  +10s probably kubectl changed the scale of Deployment.apps shop/web: spec.replicas
`},
		"an apply of everything that rolls out": {func(s *story) {
			s.run("deployment-controller", web, changed(web, "10"), wrote("create", shopObject("apps", "ReplicaSet", "web-2"), "11"))
			s.has(web, hour, owner("kubectl-apply", "", s.at, "spec.replicas", "spec.template.spec"))
		}, `rollout of web [Rollout] by probably kubectl-apply: 2
  +10s deployment-controller created ReplicaSet.apps shop/web-2
  +10s probably kubectl-apply changed Deployment.apps shop/web: spec.replicas, spec.template.spec
`},
		"a deletion by a user, of whom nothing is known": {func(s *story) {
			s.run("endpointslice-controller", shopObject("", "Service", "web"), runs.Cause{Verb: "Deleted", Object: pod}, wrote("update", shopObject("discovery.k8s.io", "EndpointSlice", "web-1"), "9", "endpoints"))
		}, `deletion of Pod web-x [Deletion] by another program: 2
  +10s endpointslice-controller updated EndpointSlice.discovery.k8s.io shop/web-1: endpoints
  +10s another program deleted Pod shop/web-x (deleted)
`},
		"a deletion by a controller": {func(s *story) {
			s.run("job-controller", shopObject("batch", "Job", "once"), runs.Cause{Verb: "Timer"}, wrote("delete", pod, ""))
			s.after(time.Second).run("endpointslice-controller", shopObject("", "Service", "web"), runs.Cause{Verb: "Deleted", Object: pod}, wrote("update", shopObject("discovery.k8s.io", "EndpointSlice", "web-1"), "9"))
		}, `job-controller for once [Itself] by job-controller: 2
  +11s endpointslice-controller updated EndpointSlice.discovery.k8s.io shop/web-1
  +10s job-controller deleted Pod shop/web-x (deleted)
`},
		"a retry belongs to what began the run before": {func(s *story) {
			refused := runs.Write{Verb: "create", Object: pod, Code: 403}
			s.run("job-controller", shopObject("batch", "Job", "once"), runs.Cause{Verb: "Timer"}, refused)
			s.after(time.Second).run("job-controller", shopObject("batch", "Job", "once"), runs.Cause{Verb: "Retry"}, refused)
		}, `job-controller for once [Itself] by job-controller: 2 trouble
  +11s job-controller created Pod shop/web-x (refused with 403) (trouble)
  +10s job-controller created Pod shop/web-x (refused with 403) (trouble)
`},
		"a user's change wins over an older run that also woke the controller": {func(s *story) {
			set := shopObject("apps", "ReplicaSet", "web-1")
			s.run("deployment-controller", web, runs.Cause{Verb: "Timer"}, wrote("update", set, "8", "spec.replicas"))
			s.after(time.Minute).run("deployment-controller", web, changed(set, "8"), wrote("update", web, "9", "status"))
			last := &s.facts.Runs[1]
			last.Causes = append(last.Causes, changed(web, "10"))
			s.has(web, hour, owner("kubectl-scale", "", s.at, "spec.replicas"))
		}, `scaling of web [Scaling] by probably kubectl-scale: 2
  +1m10s deployment-controller updated Deployment.apps shop/web: status
  +1m10s probably kubectl-scale changed Deployment.apps shop/web: spec.replicas
deployment-controller for web [Itself] by deployment-controller: 1
  +10s deployment-controller updated ReplicaSet.apps shop/web-1: spec.replicas
`},
		"reports of one program about many objects": {func(s *story) {
			for i := range 3 {
				s.has(shopObject("", "Pod", fmt.Sprint("old-", i)), hour, owner("kubelet", "status", s.at, "status.phase"))
			}
		}, `status of Pod old-0 and 2 more [Status] by probably kubelet: 3
  +10s probably kubelet changed the status of Pod shop/old-0: status.phase
  +10s probably kubelet changed the status of Pod shop/old-1: status.phase
  +10s probably kubelet changed the status of Pod shop/old-2: status.phase
`},
		"what a controller does again and again": {func(s *story) {
			for i := range 3 {
				s.run("cronjob-controller", shopObject("batch", "CronJob", "often"), runs.Cause{Verb: "Timer"}, wrote("create", shopObject("batch", "Job", fmt.Sprint("often-", i)), fmt.Sprint(20+i)))
				s.after(20 * time.Second)
			}
		}, `cronjob-controller for often [Itself] by cronjob-controller: 3
  +50s cronjob-controller created Job.batch shop/often-2
  +30s cronjob-controller created Job.batch shop/often-1
  +10s cronjob-controller created Job.batch shop/often-0
`},
		"an Event alone": {func(s *story) {
			s.facts.Events = []explain.NamespaceEvent{{About: pod, Event: explain.Event{Last: s.at, Type: "Warning", Reason: "BackOff", Note: "restarts", Count: 7, Source: "kubelet"}}}
		}, `Pod web-x: BackOff [Event] by kubelet: 1 trouble
  +10s kubelet Pod shop/web-x: BackOff: restarts (trouble)
`},
		"no record": {func(s *story) {
			s.facts.Recorded, s.facts.NotRecorded, s.facts.Unread = false, "no manager has announced itself", []string{"events: forbidden"}
		}, "unknown: events: forbidden\nunknown: what controllers did and why: no manager has announced itself\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory().after(10 * time.Second)
			c.tell(s)
			if got := lines(explain.WhatHappened(s.facts)); got != c.want {
				t.Errorf("what happened is\n%swant\n%s", got, c.want)
			}
		})
	}
}

// The answer says from when on the record is complete, and runs before the time that is asked for only say what began
// later ones.
func TestWhatIsNotKeptIsNamed(t *testing.T) {
	s := newStory().after(-time.Minute)
	web, set := shopObject("apps", "Deployment", "web"), shopObject("apps", "ReplicaSet", "web-1")
	s.run("deployment-controller", web, runs.Cause{Verb: "Timer"}, wrote("update", set, "8", "spec.replicas"))
	s.after(2*time.Minute).run("replicaset-controller", set, changed(set, "8"), wrote("create", shopObject("", "Pod", "web-x"), "9"))
	s.facts.Kept = s.facts.Since.Add(time.Second)
	want := "deployment-controller for web [Itself] by deployment-controller: 1\n  +1m0s replicaset-controller created Pod shop/web-x\n" +
		"unknown: not recorded: before " + s.facts.Kept.Local().Format(time.TimeOnly) + ", as the record does not keep those runs any more\n"
	if got := lines(explain.WhatHappened(s.facts)); got != want {
		t.Errorf("what happened is\n%swant\n%s", got, want)
	}
}

// A thousand changes in a group, and hundreds of groups, make an answer of a bounded size that counts all of them.
func TestManyChangesAreBounded(t *testing.T) {
	s := newStory().after(time.Second)
	for i := range 300 {
		s.run("job-controller", shopObject("batch", "Job", fmt.Sprint("job-", i)), runs.Cause{Verb: "Timer"}, wrote("create", shopObject("", "Pod", fmt.Sprint("job-", i)), fmt.Sprint(9000+i)))
	}
	s.after(time.Second)
	for i := range 1000 {
		cause := runs.Cause{Verb: "Retry"}
		if i == 0 {
			cause.Verb = "Timer"
		}
		s.run("replicaset-controller", shopObject("apps", "ReplicaSet", "web-1"), cause, wrote("create", shopObject("", "Pod", fmt.Sprint("web-", i)), fmt.Sprint(100+i)))
	}
	h := explain.WhatHappened(s.facts)
	if len(h.Groups) != 100 || h.MoreGroups != 201 {
		t.Fatalf("%d groups and %d more, want 100 and 201", len(h.Groups), h.MoreGroups)
	}
	if big := h.Groups[0]; big.Total != 1000 || len(big.Changes) != 100 {
		t.Errorf("the group of 1000 changes counts %d and lists %d", big.Total, len(big.Changes))
	}
}
