// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/internal/managedfields"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

func steps(a *explain.Answer) string {
	var all []string
	for _, s := range a.Chain {
		all = append(all, fmt.Sprintf("%d %s: %s", s.Depth, s.Actor, s.Text))
	}
	return strings.Join(all, "\n")
}

// The chain of an object that another program has deleted ends with the deletion, with what a run or an Event says of it.
func TestTheChainOfAnObjectThatIsGoneEndsWithItsDeletion(t *testing.T) {
	created := run("replicaset-controller", time.Hour, func(r *runs.Run) {
		r.Number, r.Object, r.Writes = 3, runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-abc"}, []runs.Write{{Verb: "create", Object: pod1, Version: "5"}}
	})
	noticed := run("replicaset-controller", time.Minute, func(r *runs.Run) {
		r.Number, r.Object = 9, created.Object
		r.Causes = []runs.Cause{{Verb: workqueue.Deleted, Object: pod1}}
		r.Writes = []runs.Write{{Verb: "create", Object: pod2, Version: "9"}}
	})
	evicted := run("disruption-controller-pods", 2*time.Minute, func(r *runs.Run) {
		r.Number, r.Object = 8, pod1
		r.Reasons = []runs.Reason{{Code: "PodIsDisrupted", Text: "the Pod is to be deleted (EvictionByEvictionAPI: evicting)"}}
	})
	deleted := run("garbage-collector-controller", time.Minute, func(r *runs.Run) {
		r.Object, r.Writes = pod1, []runs.Write{{Verb: "delete", Object: pod1}}
	})
	preempted := []explain.Event{{Last: now.Add(-time.Minute), Reason: "Killing", Note: "Stopping container main"},
		{Last: now.Add(-2 * time.Minute), Reason: "Preempted", Note: "Preempted by pod 77 on node node-1."}}
	for name, c := range map[string]struct {
		facts           explain.Facts
		sentence, chain string
	}{
		"by a user": {explain.Facts{Runs: []explain.Traced{noticed, created}}, "so a user or another program did; replicaset-controller noticed it at ",
			"0 replicaset-controller: created Pod shop/web-1\n1 another program: deleted Pod shop/web-1\n2 replicaset-controller: noticed it, and created Pod shop/web-2"},
		"by an eviction": {explain.Facts{Runs: []explain.Traced{noticed, evicted, created}}, "the Pod is to be deleted (EvictionByEvictionAPI: evicting); replicaset-controller noticed it at ",
			"1 another program: deleted Pod shop/web-1: disruption-controller-pods said at "},
		"by an eviction, with no owner": {explain.Facts{Runs: []explain.Traced{evicted}}, ": the Pod is to be deleted (EvictionByEvictionAPI: evicting).", "0 another program: deleted Pod shop/web-1: disruption"},
		"by a preemption":               {explain.Facts{Events: preempted}, "the Event Preempted of ", "0 another program: deleted Pod shop/web-1: the Event Preempted of "},
		"by a controller":               {explain.Facts{Runs: []explain.Traced{deleted, created}, Events: preempted}, "garbage-collector-controller deleted it at ", "0 garbage-collector-controller: deleted Pod shop/web-1"},
		"nothing is known":              {explain.Facts{}, "Pod shop/web-1 does not exist.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now, c.facts.Object, c.facts.Recorded = now, pod1, true
			answer := explain.Tell(c.facts)
			if got := steps(&answer); !strings.Contains(answer.Sentence, c.sentence) || !strings.Contains(got, c.chain) || c.chain == "" && got != "" {
				t.Errorf("the sentence is %s\nwant %q; the chain is\n%s\nwant\n%s", answer.Sentence, c.sentence, got, c.chain)
			}
		})
	}
}

// The chain of a wait that the value of a field causes begins with the edit of this field.
func TestTheChainLeadsToTheEditOfTheFieldThatDecides(t *testing.T) {
	paused := []runs.Run{{Number: 12, Controller: "deployment-controller", Key: "shop/web", Object: web, Began: now.Add(-2 * time.Minute),
		Reasons: []runs.Reason{{Code: "RolloutPaused", Text: "the rollout is paused"}}}}
	entry := func(manager, at, field string) map[string]any {
		return map[string]any{"manager": manager, "operation": "Update", "time": "2026-03-02T" + at + "Z", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:" + field: map[string]any{}}}}
	}
	for name, c := range map[string]struct {
		entries []any
		want    string
	}{
		"by an edit": {[]any{entry("kubectl-create", "11:00:00", "replicas"), entry("kubectl-rollout", "11:57:59", "paused"), entry("kubectl-set", "11:59:00", "template")},
			"0 kubectl-rollout: changed Deployment.apps shop/web: spec.paused\n1 deployment-controller: waits: the rollout is paused"},
		"when it was created": {[]any{entry("kubectl-create", "11:00:00", "paused")}, "0 kubectl-create: created Deployment.apps shop/web: spec.paused\n1 deployment-controller: waits: the rollout is paused"},
		// The last edit that is known is told instead.
		"by a program not known": {[]any{entry("kubectl-create", "11:00:00", "replicas")}, "0 kubectl-create: created Deployment.apps shop/web: spec.replicas"},
		"by no program":          {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := state("managedFields", c.entries, "creationTimestamp", "2026-03-02T11:00:00Z")
			answer := explain.Tell(explain.Facts{Now: now, Object: web, State: s, Recorded: true, Present: paused})
			if got := steps(&answer); got != c.want {
				t.Errorf("the chain is\n%s\nwant\n%s", got, c.want)
			}
			if len(answer.Chain) == 2 && (answer.Chain[1].Run != 12 || answer.Chain[0].At.After(answer.Chain[1].At) || !answer.Chain[0].Probably) {
				t.Errorf("the steps are %+v", answer.Chain)
			}
		})
	}
}

// A fight names the program whose field managers are in former versions of the object, with the times of its changes.
func TestAFightNamesTheOtherProgram(t *testing.T) {
	at := func(version int, manager string, ago time.Duration) explain.Version {
		return explain.Version{Version: fmt.Sprint(version), Managers: []managedfields.Entry{
			{Manager: "kubectl", Time: now.Add(-time.Hour), Fields: map[string]any{"f:spec": map[string]any{"f:template": map[string]any{}}}},
			{Manager: manager, Time: now.Add(-ago), Fields: map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}},
		}}
	}
	f := explain.Facts{Now: now, Object: web, State: state(), Recorded: true, Runs: fight(4)}
	from := f.Contested()
	if strings.Join(from, " ") != "97 98 99" {
		t.Errorf("the versions to begin with are %q", from)
	}
	f.Versions = []explain.Version{at(970, "hpa", 150*time.Second), at(98, "setpoint", 2*time.Minute), at(980, "hpa", 90*time.Second), at(981, "hpa", 90*time.Second), at(99, "setpoint", time.Minute)}
	answer := explain.Tell(f)
	if len(answer.Fights) != 1 || strings.Join(answer.Fights[0].Others, " ") != "hpa" || !strings.Contains(answer.Sentence, "it fights with hpa") {
		t.Fatalf("the fights are %+v, and it says %s", answer.Fights, answer.Sentence)
	}
	times := 0
	for _, w := range answer.Fights[0].Writes {
		if w.Actor == "hpa" {
			times++
		}
	}
	if times != 2 || len(answer.Fights[0].Writes) != 6 {
		t.Errorf("the writes are %+v, want two of hpa among six", answer.Fights[0].Writes)
	}
	f = explain.Facts{Now: now, Object: web, State: state(), Recorded: true, Runs: inTurns(changes(8))}
	if from := f.Contested(); from != nil {
		t.Errorf("of a fight of two recorded controllers, the versions %q are asked for", from)
	}
}
