// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

var (
	configMaps = event.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}
	widgets    = event.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets", Namespaced: true}
	noon       = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
)

// story drives a Settler by a script, a step a word:
//
//	5s             this much later, with what becomes due on the way
//	a:created      an event of the ConfigMap a; W: of the Widget W, which can be ready
//	a:updated/3    its state is then 3; of a Widget, 0 is not ready and others are
//	flush
//
// It returns what is told, with the second at which it is.
func story(t *testing.T, o Options, script string) []string {
	t.Helper()
	s := New(o)
	now := noon
	states := map[string]map[string]any{}
	version := 0
	var told []string
	tell := func(events []*event.Event) {
		for _, e := range events {
			line := fmt.Sprintf("%gs %s %s", now.Sub(noon).Seconds(), e.Key.Name, e.Verb)
			if e.New != nil {
				line += fmt.Sprintf("/%v", e.New["state"])
			}
			if e.Merged > 0 {
				line += fmt.Sprintf(" ×%d since %gs", e.Merged, e.Since.Sub(noon).Seconds())
			}
			if e.Old != nil {
				line += fmt.Sprintf(" from %v", e.Old["state"])
			}
			if e.Summary != "" {
				line += " (" + e.Summary + ")"
			}
			told = append(told, line)
		}
	}
	for step := range strings.FieldsSeq(script) {
		if step == "flush" {
			tell(s.Flush())
			continue
		}
		if d, err := time.ParseDuration(step); err == nil {
			end := now.Add(d)
			for next := s.Next(); !next.IsZero() && !next.After(end); next = s.Next() {
				now = next
				tell(s.Due(now))
			}
			now = end
			continue
		}
		name, what, _ := strings.Cut(step, ":")
		verb, state, _ := strings.Cut(what, "/")
		uid, verb, _ := strings.Cut(verb, "!") // 2!updated is of another object of that name
		if verb == "" {
			uid, verb = "1", uid
		}
		version++
		e := &event.Event{
			ID: fmt.Sprint(version), Version: fmt.Sprint(version), Time: now, Verb: event.Verb(verb), Kind: configMaps,
			Key: object.Key{Namespace: "n", Name: name}, UID: types.UID(uid), Old: states[name],
		}
		if name >= "A" && name <= "Z" {
			e.Kind = widgets
		}
		if e.Verb != event.Deleted {
			e.New = map[string]any{"state": state}
			if e.Kind == widgets {
				status := map[bool]string{true: "False", false: "True"}[state == "0"]
				e.New["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": "Starting"}}}
			}
		}
		states[name] = e.New
		tell(s.Add(e, now))
	}
	if s.Held() > 0 {
		told = append(told, fmt.Sprintf("held: %d", s.Held()))
	}
	return told
}

func TestWhatIsToldAndWhen(t *testing.T) {
	window := Options{Window: time.Second}
	rest := Options{Settle: 3 * time.Second, maxHold: 20 * time.Second}
	both := Options{Window: time.Second, Settle: 3 * time.Second}
	for name, test := range map[string]struct {
		options Options
		script  string
		want    []string
	}{
		"without a window everything at once": {Options{}, "a:created/1 a:updated/2 a:deleted",
			[]string{"0s a created/1", "0s a updated/2 from 1", "0s a deleted from 2"}},
		"updates within the window are one": {window, "a:existing/0 a:updated/1 400ms a:updated/2 400ms a:updated/3 2s",
			[]string{"0s a existing/0", "1s a updated/3 ×3 since 0s from 0"}},
		"an update alone is told as it is": {window, "a:existing/0 a:updated/1 2s", []string{"0s a existing/0", "1s a updated/1 from 0"}},
		"the next window begins with the next update": {window, "a:existing/0 a:updated/1 1500ms a:updated/2 2s",
			[]string{"0s a existing/0", "1s a updated/1 from 0", "2.5s a updated/2 from 1"}},
		"a creation and its updates are a creation": {window, "a:created/1 100ms a:updated/2 a:updated/3 2s",
			[]string{"1s a created/3 ×3 since 0s"}},
		"a deletion is told at once, with what was held": {window, "a:existing/0 a:updated/1 100ms a:updated/2 a:deleted",
			[]string{"0s a existing/0", "0.1s a deleted ×3 since 0s from 2"}},
		"an object that came and went is told of": {window, "a:created/1 300ms a:deleted",
			[]string{"0.3s a deleted ×2 since 0s from 1 (created and deleted again in 0.3 s)"}},
		"and comes again": {window, "a:created/1 a:deleted a:2!created/5 2s",
			[]string{"0s a deleted ×2 since 0s from 1 (created and deleted again)", "1s a created/5"}},
		"a replacement is told alone": {window, "a:existing/0 a:updated/1 a:2!replaced/5 a:2!updated/6 2s",
			[]string{"0s a existing/0", "0s a updated/1 from 0", "0s a replaced/5 from 1", "1s a updated/6 from 5"}},
		"objects of other UIDs are not mixed": {window, "a:existing/0 a:updated/1 a:2!updated/2 2s",
			[]string{"0s a existing/0", "0s a updated/1 from 0", "1s a updated/2 from 1"}},
		"a second creation does not swallow the first": {window, "a:created/1 a:created/2 2s", []string{"0s a created/1", "1s a created/2 from 1"}},
		"objects are held apart": {window, "a:created/1 b:created/1 500ms a:updated/2 2s",
			[]string{"1s a created/2 ×2 since 0s", "1s b created/1"}},
		"what is held comes out in the end": {window, "b:created/1 a:created/1 flush", []string{"0s b created/1", "0s a created/1"}},
		"beyond the limit the oldest goes": {Options{Window: time.Second, limit: 2}, "a:created/1 b:created/1 a:updated/2 c:created/1",
			[]string{"0s a created/2 ×2 since 0s", "held: 2"}},

		"on its way it is held, at rest it is told": {rest, "W:existing/1 W:updated/0 1s W:updated/0 1s W:updated/0 6s W:updated/2 10s",
			[]string{"0s W existing/1", "11s W settled/2 ×4 since 0s from 1 (4 changes in 8 s, now ready)"}},
		"it must stay at rest": {rest, "W:existing/1 W:updated/0 1s W:updated/2 2s W:updated/0 1s W:updated/3 10s",
			[]string{"0s W existing/1", "7s W settled/3 ×4 since 0s from 1 (4 changes in 4 s, now ready)"}},
		"what is and stays at rest is told at once":   {rest, "W:existing/1 W:updated/2", []string{"0s W existing/1", "0s W updated/2 from 1"}},
		"who says nothing of rest is told of at once": {rest, "a:existing/1 a:updated/2", []string{"0s a existing/1", "0s a updated/2 from 1"}},
		"a creation is told at once, how it settles later": {rest, "W:created/0 W:updated/0 1s W:updated/1 5s",
			[]string{"0s W created/0", "4s W settled/1 ×2 since 0s from 0 (2 changes in 1 s, now ready)"}},
		"one change that brings it to rest": {rest, "W:created/0 W:updated/1 5s",
			[]string{"0s W created/0", "3s W settled/1 from 0 (1 change, now ready)"}},
		"what does not come to rest is told as it is": {rest, "W:existing/1 W:updated/0 19s W:updated/0 2s W:updated/2 4s",
			[]string{"0s W existing/1", "20s W updated/0 ×2 since 0s from 1 (2 changes in 19 s, not ready: Starting, not at rest yet)",
				"24s W settled/2 from 0 (1 change, now ready)"}},
		"a deletion does not wait for rest": {rest, "W:existing/1 W:updated/0 1s W:deleted", []string{"0s W existing/1", "1s W deleted ×2 since 0s from 0"}},
		"a window first, then until it is at rest": {both, "W:created/0 500ms W:updated/0 3s W:updated/0 1s W:updated/1 9s",
			[]string{"1s W created/0 ×2 since 0s", "7.5s W settled/1 ×2 since 3.5s from 0 (2 changes in 1 s, now ready)"}},
		"in a window it begins to move": {both, "W:existing/1 W:updated/2 500ms W:updated/0 3s W:updated/3 9s",
			[]string{"0s W existing/1", "6.5s W settled/3 ×3 since 0s from 1 (3 changes in 4 s, now ready)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := story(t, test.options, test.script); !reflect.DeepEqual(got, test.want) {
				t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestNothingHeldIsNothingDue(t *testing.T) {
	s := New(Options{Window: time.Second})
	if next := s.Next(); !next.IsZero() {
		t.Errorf("something is due at %s", next)
	}
	if got := append(s.Due(noon), s.Flush()...); len(got) > 0 {
		t.Errorf("told: %v", got)
	}
}

func TestMergedEventHasTheAuthorsAndTheIdentityOfAll(t *testing.T) {
	first := &event.Event{Verb: event.Updated, ID: "1", Authors: []event.Author{{Manager: "a"}, {Manager: "b"}}, Old: map[string]any{"a": 1}}
	last := &event.Event{Verb: event.Updated, ID: "2", Missed: true, Authors: []event.Author{{Manager: "c"}, {Manager: "a"}}, New: map[string]any{"a": 3}}
	s := New(Options{Window: time.Second})
	s.Add(first, noon)
	s.Add(last, noon)
	e := s.Flush()[0]
	if want := []event.Author{{Manager: "c"}, {Manager: "a"}, {Manager: "b"}}; !reflect.DeepEqual(e.Authors, want) {
		t.Errorf("the authors are %v, want %v", e.Authors, want)
	}
	if e.ID != "2" || !e.Missed || e.Old["a"] != 1 || e.New["a"] != 3 || first.Merged != 0 || last.Merged != 0 {
		t.Errorf("merged %+v, of %+v and %+v", e, first, last)
	}
}

func TestMergeIsAskedForWhatChanged(t *testing.T) {
	asked := 0
	s := New(Options{Window: time.Second, Merge: func(first, last *event.Event) *event.Event {
		asked++
		return &event.Event{Kind: last.Kind, Key: last.Key, Old: first.Old, New: last.New, Classes: []event.Class{event.Heartbeat}}
	}})
	for i := range 5 {
		s.Add(&event.Event{Verb: event.Updated, ID: fmt.Sprint(i), Kind: configMaps, Time: noon, Old: map[string]any{"a": i}, New: map[string]any{"a": i + 1}}, noon)
	}
	e := s.Flush()[0]
	if asked != 1 || !e.Is(event.Heartbeat) || e.Old["a"] != 0 || e.New["a"] != 5 || e.Merged != 5 || e.ID != "4" || e.Verb != event.Updated {
		t.Errorf("asked %d times, told %+v", asked, e)
	}
}

// The line of an object that comes to rest has who wanted the change, and what is wrong with it.
func TestTheLineOfASettledObject(t *testing.T) {
	s := New(Options{Settle: 3 * time.Second})
	deployment := event.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}
	state := func(ready int64, progressing, reason string) map[string]any {
		conditions := []any{map[string]any{"type": "Progressing", "status": progressing, "reason": reason, "message": "timed out"}}
		return map[string]any{"spec": map[string]any{"replicas": int64(3)}, "status": map[string]any{
			"replicas": int64(3), "updatedReplicas": int64(3), "readyReplicas": ready, "availableReplicas": ready, "conditions": conditions,
		}}
	}
	old := state(3, "True", "NewReplicaSetAvailable")
	now := noon
	for i, step := range []struct {
		class   event.Class
		manager string
		state   map[string]any
	}{
		{event.Content, "kubectl-set", state(2, "True", "ReplicaSetUpdated")},
		{event.Metadata, "controller", state(1, "True", "ReplicaSetUpdated")},
		{event.Status, "controller", state(1, "False", "ProgressDeadlineExceeded")},
	} {
		now = now.Add(time.Second)
		told := s.Add(&event.Event{
			ID: fmt.Sprint(i), Version: fmt.Sprint(i), Time: now, Verb: event.Updated, Kind: deployment, Key: object.Key{Namespace: "n", Name: "web"},
			Classes: []event.Class{step.class}, Authors: []event.Author{{Manager: step.manager}}, Old: old, New: step.state,
		}, now)
		if len(told) > 0 {
			t.Fatalf("step %d is not held", i)
		}
		old = step.state
	}
	told := s.Due(now.Add(time.Minute))
	if len(told) != 1 {
		t.Fatalf("%d events are told", len(told))
	}
	const want = "3 changes in 2 s, now 1/3 ready, past its deadline; Progressing False (ProgressDeadlineExceeded): timed out"
	if e := told[0]; e.Verb != event.Settled || e.Summary != want || len(e.Authors) != 1 || e.Authors[0].Manager != "kubectl-set" {
		t.Errorf("%s by %v: %q, want %q", e.Verb, e.Authors, e.Summary, want)
	}
}

// A Pod that is not at rest after a minute has what is wrong with it in its line, and not twice.
func TestTheLineOfAnObjectThatDoesNotComeToRest(t *testing.T) {
	s := New(Options{Settle: 3 * time.Second})
	status := map[string]any{"name": "web", "restartCount": int64(2), "state": map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}}}
	s.Add(&event.Event{
		ID: "1", Version: "1", Time: noon, Verb: event.Updated, Kind: event.Kind{Version: "v1", Kind: "Pod", Resource: "pods"}, Key: object.Key{Name: "web"},
		Classes: []event.Class{event.Status}, New: map[string]any{"status": map[string]any{"phase": "Running", "containerStatuses": []any{status}}},
	}, noon)
	told := s.Due(noon.Add(time.Hour))
	const want = "1 change, Running, 0/1 ready, not at rest yet; container web CrashLoopBackOff: 2 restarts"
	if len(told) != 1 || told[0].Summary != want {
		t.Errorf("%+v, want one with %q", told, want)
	}
}
