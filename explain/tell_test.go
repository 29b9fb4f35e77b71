// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

var (
	now  = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	web  = runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "d"}
	pod1 = runs.Object{Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "p1"}
	pod2 = runs.Object{Kind: "Pod", Namespace: "shop", Name: "web-2", UID: "p2"}
)

func state(more ...any) map[string]any {
	metadata := map[string]any{"name": "web", "uid": "d", "managedFields": []any{
		managed("setpoint", "status", "11:59:30", `status`), managed("kubectl-edit", "", "11:57:00", `spec`),
	}}
	for i := 0; i+1 < len(more); i += 2 {
		metadata[more[i].(string)] = more[i+1]
	}
	return map[string]any{"metadata": metadata}
}

func managed(manager, subresource, at, field string) map[string]any {
	return map[string]any{
		"manager": manager, "operation": "Update", "subresource": subresource, "time": "2026-03-02T" + at + "Z",
		"fieldsV1": map[string]any{"f:" + field: map[string]any{"f:replicas": map[string]any{}}},
	}
}

func run(controller string, ago time.Duration, change func(*runs.Run)) explain.Traced {
	r := runs.Run{Number: 7, Controller: controller, Key: "shop/web", Object: web, Began: now.Add(-ago), Last: now.Add(-ago), Outcome: runs.Done, Runs: 1}
	change(&r)
	return explain.Traced{Run: r}
}

func waits(about runs.Object) []runs.Run {
	return []runs.Run{{Controller: "deployment-controller", Key: "shop/web", Object: web, Began: now.Add(-3 * time.Minute), Reasons: []runs.Reason{
		{Code: "PodsNotAvailable", Text: "{n} of 3 Pods are available", Params: []runs.Param{{Name: "n", Value: "1"}}, About: about},
	}}}
}

// normally returns runs whose reasons are normal states.
func normally(all []runs.Run) []runs.Run {
	for _, r := range all {
		for i := range r.Reasons {
			r.Reasons[i].Normal = true
		}
	}
	return all
}

// The first sentence names the cause, in the order of blame.
func TestTheFirstSentence(t *testing.T) {
	broken := []explain.Part{
		{Object: runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-abc"}, Depth: 1, Trouble: []string{"1 of 3 Pods are ready"}},
		{Object: pod1, Depth: 2, Trouble: []string{`the image of container web cannot be pulled`}},
		{Object: pod2, Depth: 2, Trouble: []string{`the image of container web cannot be pulled`}},
	}
	for name, c := range map[string]struct {
		facts      explain.Facts
		code, want string
	}{
		"all is well": {explain.Facts{State: state()}, explain.CodeAllIsWell,
			"All is as it should be: no controller waits for anything, and no state names trouble."},
		"a reason, and the deepest part": {explain.Facts{State: state(), Present: waits(runs.Object{}), Below: broken}, explain.CodeWaits,
			"1 of 3 Pods are available, since 3 min; Pod web-1: the image of container web cannot be pulled (and 1 more says the same)."},
		"a reason about another object is not its own": {explain.Facts{State: state(), Present: waits(pod1)}, explain.CodeBelow,
			"Pod web-1: 1 of 3 Pods are available, since 3 min."},
		"a normal state": {explain.Facts{State: state(), Present: normally(waits(runs.Object{}))}, explain.CodeAllIsWell,
			"All is as it should be: 1 of 3 Pods are available."},
		"trouble comes before a normal state": {explain.Facts{State: state(), Present: normally(waits(runs.Object{})), Below: broken}, explain.CodeBelow,
			"Pod web-1: the image of container web cannot be pulled (and 1 more says the same)."},
		"a wait comes before a normal state": {explain.Facts{State: state(), Present: append(normally(waits(runs.Object{})), waits(runs.Object{})...)},
			explain.CodeWaits, "1 of 3 Pods are available, since 3 min."},
		"a part alone": {explain.Facts{State: state(), Below: broken}, explain.CodeBelow,
			"Pod web-1: the image of container web cannot be pulled (and 1 more says the same)."},
		"its own state": {explain.Facts{State: state(), Trouble: []string{"the node is not ready"}}, explain.CodeTrouble, "The node is not ready."},
		"a deletion": {explain.Facts{State: state("deletionTimestamp", "2026-03-02T11:50:00Z", "finalizers", []any{"example.com/a"})}, explain.CodeDeleting,
			"It is being deleted, since 10 min; it waits until the finalizer example.com/a is removed."},
		"a deletion with a reason": {explain.Facts{State: state("deletionTimestamp", "2026-03-02T11:50:00Z"), Present: waits(runs.Object{})}, explain.CodeDeleting,
			"It is being deleted, since 10 min; 1 of 3 Pods are available."},
		"it is gone": {explain.Facts{Runs: []explain.Traced{run("garbage-collector-controller", time.Minute, func(r *runs.Run) {
			r.Writes = []runs.Write{{Verb: "delete", Object: web}}
		})}}, explain.CodeGone, fmt.Sprintf("Deployment.apps shop/web does not exist: garbage-collector-controller deleted it at %s.",
			now.Add(-time.Minute).Local().Format(time.TimeOnly))},
		"it never was": {explain.Facts{}, explain.CodeGone, "Deployment.apps shop/web does not exist."},
		"runs fail": {explain.Facts{State: state(), Runs: []explain.Traced{run("website-controller", time.Second, func(r *runs.Run) {
			r.Outcome, r.Error = runs.Failed, "no such template"
		})}}, explain.CodeFails, "website-controller fails: no such template."},
		"a hot loop": {explain.Facts{State: state(), Runs: []explain.Traced{run("website-controller", 30*time.Second, func(r *runs.Run) {
			r.Runs, r.Last = 300, now.Add(-time.Second)
		})}}, explain.CodeHotLoop, "website-controller has run 300 times in a row without effect."},
		"many runs over a long time are none": {explain.Facts{State: state(), Runs: []explain.Traced{run("website-controller", time.Hour, func(r *runs.Run) {
			r.Runs, r.Last = 300, now.Add(-time.Second)
		})}}, explain.CodeAllIsWell, "All is as it should be: no controller waits for anything, and no state names trouble."},
		"a fight": {explain.Facts{State: state(), Runs: fight(4)}, explain.CodeFight,
			"The controller scaler has changed spec.replicas 4 times within 10 min: it fights with kubectl-edit."},
		"a fight that the status of another controller hides": {explain.Facts{State: state(), Runs: behindStatus(fight(4))}, explain.CodeFight,
			"The controller scaler has changed spec.replicas 4 times within 10 min: it fights with kubectl-edit."},
		"two controllers that fight": {explain.Facts{State: state(), Runs: inTurns(rollout(8))}, explain.CodeFight,
			"The controller left has changed spec.replicas 4 times within 10 min: it fights with right."},
		"two controllers that take three turns": {explain.Facts{State: state(), Runs: inTurns(rollout(6))}, explain.CodeAllIsWell,
			"All is as it should be: no controller waits for anything, and no state names trouble."},
		"a rollout is no fight": {explain.Facts{State: state(), Runs: rollout(4)}, explain.CodeAllIsWell,
			"All is as it should be: no controller waits for anything, and no state names trouble."},
		"three changes are no fight": {explain.Facts{State: state(), Runs: fight(3)}, explain.CodeAllIsWell,
			"All is as it should be: no controller waits for anything, and no state names trouble."},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now, c.facts.Object, c.facts.Recorded = now, web, true
			got := explain.Tell(c.facts)
			if got.Code != c.code || got.Sentence != c.want {
				t.Errorf("it says %s: %s\nwant %s: %s", got.Code, got.Sentence, c.code, c.want)
			}
		})
	}
	alone := explain.Tell(explain.Facts{Now: now, Object: web, State: state(), NotRecorded: "no manager answers"})
	if alone.Code != explain.CodeNotMuch || len(alone.Unknown) != 1 || alone.Unknown[0] != "what controllers did and why: no manager answers" {
		t.Errorf("without a manager it says %s: %s; not known: %q", alone.Code, alone.Sentence, alone.Unknown)
	}
}

// A thousand children that say the same are one line, and what the record does not keep any more has a line of its own.
func TestManyChildrenFoldAndAnOldRecordSaysSo(t *testing.T) {
	var pods []explain.Part
	for i := range 1000 {
		name := fmt.Sprintf("web-%d", i)
		pods = append(pods, explain.Part{Object: runs.Object{Kind: "Pod", Namespace: "shop", Name: name}, Depth: 1, Trouble: []string{"container web of " + name + " crashes"}})
	}
	answer := explain.Tell(explain.Facts{Now: now, Object: web, State: state(), Recorded: true, Since: now.Add(-time.Hour), Below: pods})
	if len(answer.Parts) != 1 || answer.Parts[0].Alike != 999 || answer.Sentence != "Pod web-0: container web of web-0 crashes (and 999 more say the same)." {
		t.Errorf("%d parts, %d alike, and it says %s", len(answer.Parts), answer.Parts[0].Alike, answer.Sentence)
	}
	if want := "runs older than what is kept: since 2026-03-02T11:00:00Z"; len(answer.Unknown) != 1 || answer.Unknown[0] != want {
		t.Errorf("not known: %q, want %q", answer.Unknown, want)
	}
}

// fight returns runs of a controller that change one field so many times, each after a change by another program.
func fight(times int) []explain.Traced {
	all := changes(times)
	for i := range all {
		all[i].Origins = []runs.Origin{{Cause: runs.Cause{Source: "deployments", Verb: "Updated", Object: web}, NotKnown: runs.WrittenByOthers}}
	}
	return all
}

// rollout returns runs of a controller that change one field so many times, of which each was caused by the write of a recorded controller.
func rollout(times int) []explain.Traced {
	all := changes(times)
	for i := range all {
		all[i].Origins = []runs.Origin{{Cause: runs.Cause{Source: "deployments", Verb: "Updated", Object: web}, Run: &runs.Run{Controller: "other"}}}
	}
	return all
}

// behindStatus puts a run of another controller, which wrote the status, between each run and what it answers.
func behindStatus(all []explain.Traced) []explain.Traced {
	for i := range all {
		all[i].Origins = []runs.Origin{{
			Cause: runs.Cause{Source: "deployments", Verb: "Updated", Object: web}, Run: &runs.Run{Number: 99, Controller: "other"},
			Write: &runs.Write{Verb: "update", Object: web, Subresource: "status"}, Origins: all[i].Origins,
		}}
	}
	return all
}

// inTurns makes every other run one of another controller.
func inTurns(all []explain.Traced) []explain.Traced {
	for i := range all {
		all[i].Controller = []string{"left", "right"}[i%2]
	}
	return all
}

// changes returns runs of a controller that change one field so many times.
func changes(times int) (all []explain.Traced) {
	for i := range times {
		all = append(all, run("scaler", time.Duration(i)*time.Minute, func(r *runs.Run) {
			r.Writes = []runs.Write{{Verb: "patch", Object: web, Version: fmt.Sprint(100 - i), Fields: []string{"spec.replicas"}}}
		}))
	}
	return all
}

// The chain leads from the edit to the newest write. The author of the edit is inferred, and the chain says so.
func TestTheChainOfCauses(t *testing.T) {
	set := runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-abc", UID: "r"}
	first := run("deployment-controller", 90*time.Second, func(r *runs.Run) {
		r.Number, r.Causes = 5, []runs.Cause{{Source: "deployments", Verb: "Updated", Object: web, Version: "40"}}
		r.Writes = []runs.Write{{Verb: "patch", Object: set, Version: "41", Fields: []string{"spec.replicas"}}}
	})
	second := run("replicaset-controller", 89*time.Second, func(r *runs.Run) {
		r.Number, r.Object, r.Key = 6, set, "shop/web-abc"
		r.Writes = []runs.Write{{Verb: "create", Object: pod1, Version: "42"}, {Verb: "create", Object: pod2, Version: "43"}}
	})
	second.Origins = []runs.Origin{{
		Cause: runs.Cause{Source: "replicasets", Verb: "Updated", Object: set, Version: "41"}, Run: &first.Run, Write: &first.Writes[0],
		Origins: []runs.Origin{{Cause: first.Causes[0], NotKnown: runs.WrittenByOthers}},
	}}
	answer := explain.Tell(explain.Facts{Now: now, Object: web, State: state(), Recorded: true, Runs: []explain.Traced{second, first}})
	var got []string
	for _, s := range answer.Chain {
		got = append(got, fmt.Sprintf("%d %s %v %s", s.Depth, s.Actor, s.Probably, s.Text))
	}
	want := []string{
		"0 kubectl-edit true updated Deployment.apps shop/web: spec.replicas",
		"1 deployment-controller false changed ReplicaSet.apps shop/web-abc: spec.replicas",
		"2 replicaset-controller false created Pod shop/web-1 and 1 more",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the chain is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A server that calls webhooks, or is busy, notes the time of the creation later than that of the fields.
func TestACreationThatTookLongIsACreation(t *testing.T) {
	for created, want := range map[string]string{
		"11:56:59": "created", "11:57:00": "created", "11:57:01": "created", "11:57:40": "created", // the fields are of 11:57:00
		"11:56:50": "changed", "11:58:30": "changed",
	} {
		answer := explain.Tell(explain.Facts{Now: now, Object: web, State: state("creationTimestamp", "2026-03-02T"+created+"Z")})
		if len(answer.Chain) != 1 || answer.Chain[0].Text != want+" Deployment.apps shop/web: spec.replicas" {
			t.Errorf("created at %s: the chain is %+v, want that kubectl-edit has %s it", created, answer.Chain, want)
		}
	}
}

// A loop that undoes a change also runs for what its own earlier run did. The chain goes through the change of the other controller, also
// if the own run is older.
func TestTheChainPrefersWhatOtherControllersChanged(t *testing.T) {
	set := runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-abc", UID: "r"}
	own := run("replicaset-controller", 95*time.Second, func(r *runs.Run) {
		r.Number, r.Object = 4, set
		r.Writes = []runs.Write{{Verb: "delete", Object: pod1}}
	})
	counted := run("disruption-controller", 94*time.Second, func(r *runs.Run) {
		r.Number = 5
		r.Writes = []runs.Write{{Verb: "update", Object: set, Subresource: "status"}}
	})
	scaled := run("deployment-controller", 90*time.Second, func(r *runs.Run) {
		r.Number = 6
		r.Writes = []runs.Write{{Verb: "patch", Object: set, Fields: []string{"spec.replicas"}}}
	})
	last := run("replicaset-controller", 89*time.Second, func(r *runs.Run) {
		r.Number, r.Object = 7, set
		r.Writes = []runs.Write{{Verb: "create", Object: pod2}}
	})
	origins := []runs.Origin{
		{Cause: runs.Cause{Source: "pods", Verb: "Deleted", Object: pod1}, Run: &own.Run, Write: &own.Writes[0]},
		{Cause: runs.Cause{Source: "replicasets", Verb: "Updated", Object: set}, Run: &counted.Run, Write: &counted.Writes[0]},
		{Cause: runs.Cause{Source: "replicasets", Verb: "Updated", Object: set}, Run: &scaled.Run, Write: &scaled.Writes[0]},
	}
	for _, c := range []struct {
		name    string
		origins []runs.Origin
		first   string
	}{
		{"a change beside an own deletion and a status", origins, "deployment-controller"},
		{"an own deletion and a later status", origins[:2], "replicaset-controller"},
		{"an own deletion alone", origins[:1], "replicaset-controller"},
	} {
		last.Origins = c.origins
		answer := explain.Tell(explain.Facts{Now: now, Object: set, State: state(), Recorded: true, Runs: []explain.Traced{last, scaled, counted, own}})
		if len(answer.Chain) != 2 || answer.Chain[0].Actor != c.first || answer.Chain[1].Run != 7 {
			t.Errorf("%s: the chain is %+v, want it to begin with %s", c.name, answer.Chain, c.first)
		}
	}
}

// Nothing that an object says moves the cursor of a terminal or begins a line of its own.
func TestControlCharactersDoNotReachATerminal(t *testing.T) {
	evil := "\x1b[31mred\x1b[0m\nALL IS WELL\r\u202e"
	answer := explain.Tell(explain.Facts{Now: now, Object: web, State: state(), Trouble: []string{evil}, Recorded: true,
		Events: []explain.Event{{Last: now, Reason: evil, Note: evil}}, Below: []explain.Part{{Object: pod1, Depth: 1, Trouble: []string{evil}}}})
	var b strings.Builder
	if err := answer.Write(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.ContainsAny(line, "\x1b\r\u202e") || strings.HasPrefix(line, "ALL IS WELL") {
			t.Errorf("the text has the line %q", line)
		}
	}
}

// managedFields come from a server, and objects of any kind have them.
func FuzzTell(f *testing.F) {
	f.Add(`f:spec`, `k:{"name":"web"}`, `v:"a"`)
	f.Add(`.`, `k:{"port":80}`, `i:3`)
	f.Add(`f:`, `k:`, `k:[]`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		object := state("managedFields", []any{map[string]any{
			"manager": a, "time": b, "fieldsV1": map[string]any{a: map[string]any{b: map[string]any{c: map[string]any{}}}, b: c},
		}, c, nil})
		answer := explain.Tell(explain.Facts{Now: now, Object: web, State: object, Recorded: true})
		if err := answer.Write(&strings.Builder{}); err != nil || len(answer.Fields) == 0 {
			t.Errorf("%d owners, %v", len(answer.Fields), err)
		}
	})
}

// heldBy is the state of a loop whose next run for an object waits for an own write of a Pod.
func heldBy(o runs.Object, since time.Duration, informers ...runs.InformerLag) []runs.KeyState {
	at := now.Add(-since)
	return []runs.KeyState{{Controller: "replicaset-controller", Key: "shop/" + o.Name, Object: o, State: runs.StateHeld, Since: &at, Informers: informers,
		Unseen: &runs.Unseen{Verb: "create", Object: pod1, Version: "7", Kind: "pods"}}}
}

// A controller that waits for its own write is named first, for the object and for one below it, and so is an informer that is
// not current.
func TestTheStateOfTheLoopIsInTheSentence(t *testing.T) {
	set := runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-abc", UID: "rs"}
	lag := runs.InformerLag{Kind: "pods", Trouble: "connection refused"}
	idle := runs.KeyState{Controller: "deployment-controller", Object: web, State: runs.StateIdle}
	behind := idle
	behind.Informers = []runs.InformerLag{lag}
	for name, c := range map[string]struct {
		facts      explain.Facts
		code, want string
	}{
		"an own write": {explain.Facts{Loops: heldBy(web, 12*time.Second)}, explain.CodeOwnWrite,
			"replicaset-controller waits for its own write of Pod shop/web-1: the watch of pods lags, since 12 s."},
		"an own write, and why": {explain.Facts{Loops: heldBy(web, 12*time.Second, lag)}, explain.CodeOwnWrite,
			"replicaset-controller waits for its own write of Pod shop/web-1: the watch of pods lags (connection refused), since 12 s."},
		"before a reason, which is from before the write": {explain.Facts{Loops: heldBy(web, 12*time.Second), Present: waits(runs.Object{})}, explain.CodeOwnWrite,
			"replicaset-controller waits for its own write of Pod shop/web-1: the watch of pods lags, since 12 s."},
		"an own write a moment ago": {explain.Facts{Loops: heldBy(web, time.Second)}, explain.CodeAllIsWell,
			"All is as it should be: no controller waits for anything, and no state names trouble."},
		"below it": {explain.Facts{Loops: heldBy(set, 12*time.Second), Present: waits(runs.Object{})}, explain.CodeWaits,
			"1 of 3 Pods are available, since 3 min; ReplicaSet web-abc: replicaset-controller waits for its own write of Pod shop/web-1: the watch of pods lags."},
		"below it alone": {explain.Facts{Loops: heldBy(set, 12*time.Second)}, explain.CodeBelow,
			"ReplicaSet web-abc: replicaset-controller waits for its own write of Pod shop/web-1: the watch of pods lags."},
		"an informer that is not current": {explain.Facts{Loops: []runs.KeyState{behind}}, explain.CodeLags,
			"deployment-controller does not know the newest state: its informer of pods is not current: connection refused."},
		"a manager that stands by": {explain.Facts{Loops: append([]runs.KeyState{idle}, heldBy(web, 12*time.Second)...)}, explain.CodeOwnWrite,
			"replicaset-controller waits for its own write of Pod shop/web-1: the watch of pods lags, since 12 s."},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now, c.facts.Object, c.facts.Recorded, c.facts.State = now, web, true, state()
			answer := explain.Tell(c.facts)
			if answer.Code != c.code || !strings.EqualFold(answer.Sentence, c.want) {
				t.Errorf("the answer is %s: %q, want %s: %q", answer.Code, answer.Sentence, c.code, c.want)
			}
		})
	}
}

// The section of the loops shows the place in the queue, the end of a back-off, attempts, and what the loop waits for.
func TestTheSectionOfTheLoops(t *testing.T) {
	at := func(d time.Duration) *time.Time { t := now.Add(d); return &t }
	failed := run("web-controller", 3*time.Second, func(r *runs.Run) { r.Outcome, r.Error, r.Attempt = runs.Failed, "no quota", 3 })
	of := func(state string, change func(*runs.KeyState)) []runs.KeyState {
		s := runs.KeyState{Controller: "web-controller", Key: "shop/web", Object: web, State: state}
		change(&s)
		return []runs.KeyState{s}
	}
	end := now.Add(time.Minute).Local().Format(time.TimeOnly)
	for name, c := range map[string]struct {
		loops []runs.KeyState
		want  string
	}{
		"a back-off": {of(runs.StateDelayed, func(s *runs.KeyState) { s.Until, s.Failures = at(time.Minute), 4 }), "attempt 4: no quota, the back-off ends at " + end},
		"a time":     {of(runs.StateDelayed, func(s *runs.KeyState) { s.Until = at(time.Minute) }), "attempt 4: no quota, runs again at " + end},
		"the queue": {of(runs.StateReady, func(s *runs.KeyState) { s.Since, s.Ahead, s.Ready = at(-4*time.Second), 17, 40 }),
			"waits for a worker since 4 s, with 17 of 40 keys ahead of it"},
		"a long queue": {of(runs.StateReady, func(s *runs.KeyState) { s.Since, s.Ahead, s.Ready = at(-4*time.Second), runs.AheadCounted, 40_000 }),
			"with more than 10000 of 40000 keys ahead of it"},
		"a long run": {of(runs.StateRunning, func(s *runs.KeyState) { s.Since = at(-40 * time.Second) }), "runs since 40 s"},
		"an own write": {of(runs.StateHeld, func(s *runs.KeyState) { *s = heldBy(web, 3*time.Second)[0]; s.Controller = "web-controller" }),
			"the next run waits since 3 s until the informer of pods has seen its own create of Pod shop/web-1"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := explain.Tell(explain.Facts{Now: now, Object: web, State: state(), Recorded: true, Runs: []explain.Traced{failed}, Loops: c.loops})
			var text strings.Builder
			if err := answer.Write(&text); err != nil || !strings.Contains(text.String(), "web-controller  error, the last run 3 s ago") || !strings.Contains(text.String(), c.want) {
				t.Errorf("the answer is %s (%v), want %q", &text, err, c.want)
			}
		})
	}
}

// A controller that writes again and again in vain is a hot loop: the server changes nothing, or each write causes the next
// run. A rollout is none.
func TestRunsThatWriteInVainAreAHotLoop(t *testing.T) {
	row := func(n int, pause time.Duration, change func(r *runs.Run, i int)) (all []explain.Traced) {
		for i := range n { // the newest first
			all = append(all, run("polisher", time.Duration(i)*pause, func(r *runs.Run) {
				r.Number = uint64(n - i)
				r.Writes = []runs.Write{{Verb: "patch", Object: web, Version: "7", Fields: []string{"metadata.annotations.at"}}}
				change(r, n-i)
			}))
		}
		return all
	}
	self := func(r *runs.Run, i int) {
		r.Writes[0].Version = fmt.Sprint(100 + i)
		r.Causes = []runs.Cause{{Verb: "Updated", Object: web, Version: fmt.Sprint(99 + i)}}
	}
	const well = "All is as it should be: no controller waits for anything, and no state names trouble."
	for name, c := range map[string]struct {
		runs []explain.Traced
		want string
	}{
		"nothing changes": {row(40, 50*time.Millisecond, func(*runs.Run, int) {}),
			"The controller polisher has run 40 times in a row without effect; each writes Deployment.apps shop/web and changes nothing."},
		"each causes the next": {row(40, 50*time.Millisecond, self),
			"The controller polisher has run 40 times in a row without effect; each because of its own change of metadata.annotations.at of Deployment.apps shop/web."},
		"slowly":     {row(40, time.Minute, func(*runs.Run, int) {}), well},
		"a few":      {row(12, 50*time.Millisecond, self), well},
		"a rollout":  {row(40, 50*time.Millisecond, func(r *runs.Run, i int) { self(r, i); r.Causes[0].Object = pod1 }), well},
		"one change": {row(40, 50*time.Millisecond, func(r *runs.Run, i int) { r.Writes[0].Version = fmt.Sprint(i) }), well},
	} {
		t.Run(name, func(t *testing.T) {
			answer := explain.Tell(explain.Facts{Now: now, Object: web, State: state(), Recorded: true, Runs: c.runs})
			if !strings.EqualFold(answer.Sentence, c.want) {
				t.Errorf("the sentence is %q, want %q", answer.Sentence, c.want)
			}
		})
	}
}

// Writes that change nothing share a version, so a run is found as its own cause. The chain ends there.
func TestAChainThatLeadsToItselfEnds(t *testing.T) {
	one := run("polisher", time.Second, func(r *runs.Run) {
		r.Writes = []runs.Write{{Verb: "patch", Object: web, Version: "7", Fields: []string{"metadata.labels.a"}}}
	})
	two := one
	two.Number = 8
	again := func(r runs.Run) []runs.Origin {
		return []runs.Origin{{Cause: runs.Cause{Verb: "Updated", Object: web, Version: "7"}, Run: &r, Write: &r.Writes[0]}}
	}
	one.Origins, two.Origins = again(two.Run), again(one.Run)
	answer := explain.Tell(explain.Facts{Now: now, Object: web, State: state(), Recorded: true, Runs: []explain.Traced{two, one}})
	if len(answer.Chain) != 1 || answer.Chain[0].Times != 2 {
		t.Errorf("the chain is %+v, want one step that was done twice", answer.Chain)
	}
}

// Two managers number their runs alike: two runs of one controller, key and number that began at different times are two steps.
func TestRunsOfTwoManagersWithOneNumberAreTwo(t *testing.T) {
	changes := func(field, version string) func(*runs.Run) {
		return func(r *runs.Run) {
			r.Writes = []runs.Write{{Verb: "update", Version: version, Object: web, Fields: []string{"spec." + field}}}
		}
	}
	first, second := run("c", 2*time.Minute, changes("a", "11")), run("c", time.Minute, changes("b", "12"))
	second.Origins = []runs.Origin{{Cause: runs.Cause{Verb: workqueue.Updated, Object: web, Version: "11"}, Run: &first.Run}}
	answer := explain.Tell(explain.Facts{Now: now, Object: web, State: state(), Recorded: true, Runs: []explain.Traced{second, first}})
	if len(answer.Chain) != 2 || !strings.Contains(answer.Chain[0].Text, "spec.a") || !strings.Contains(answer.Chain[1].Text, "spec.b") {
		t.Errorf("the chain is %+v, want both runs", answer.Chain)
	}
}

func TestASentenceMayBeginWithAnyLetter(t *testing.T) {
	for trouble, want := range map[string]string{"über dem Limit": "Über dem Limit.", "\xff no text": "\xff no text."} {
		a := explain.Tell(explain.Facts{
			Now: now, Object: runs.Object{Group: "example.com", Kind: "Widget", Namespace: "shop", Name: "web"}, State: map[string]any{}, Recorded: true,
			Trouble: []string{trouble},
		})
		if a.Sentence != want {
			t.Errorf("the sentence is %q, want %q", a.Sentence, want)
		}
	}
}
