// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/observe"
)

// ward is a desk with Pods whose container goes through states. Restarted is the desk of the next
// process, with the same journal.
type ward struct {
	*desk

	states map[string]tree // the newest one of each Pod, as the informer has it
}

func newWard(t *testing.T, o Options) *ward {
	t.Helper()
	w := &ward{desk: newDesk(t, 0, o), states: map[string]tree{}}
	w.troubles.state = w.state
	return w
}

func (w *ward) state(_ *follower, key object.Key) tree { return w.states[key.Name] }

func (w *ward) restart() {
	w.t.Helper()
	w.publisher = newPublisher(w.watch)
	w.troubles.state = w.state
	for name, state := range w.states {
		key := object.Key{Namespace: "shop", Name: name}
		seen, had, err := w.watch.cursor.get("pods", key)
		if err != nil || !had {
			w.t.Fatalf("the cursor of %s: %v, %v", name, had, err)
		}
		if version := w.f.observer.Event(observe.Change{Verb: event.Existing, New: state}).Version; version == seen.Version {
			w.take(report{follower: w.f, restored: key, seen: seen}, w.now)
		}
	}
}

// container is the status of a container, such as "running 3" or "CrashLoopBackOff 3": the state, and
// how often it was restarted.
func container(is string) tree {
	state, count, _ := strings.Cut(is, " ")
	var restarts int64
	_, _ = fmt.Sscan(count, &restarts)
	status := tree{"name": "web", "image": "nginx:x", "restartCount": restarts, "state": tree{"waiting": tree{"reason": state}}}
	if state == "running" {
		status["state"] = tree{"running": tree{}}
	}
	if restarts > 0 {
		status["lastState"] = tree{"terminated": tree{"exitCode": int64(1), "reason": "Error"}}
	}
	return status
}

// becomes has a Pod change to a state.
func (w *ward) becomes(name string, verb event.Verb, is string) {
	w.t.Helper()
	w.version++
	version := fmt.Sprint(w.version)
	key := object.Key{Namespace: "shop", Name: name}
	state := tree{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": tree{"namespace": "shop", "name": name, "uid": "uid-" + name, "resourceVersion": version, "labels": tree{"app": "web"}},
		"spec":     tree{"nodeName": "node-1"}, "status": tree{"phase": "Running", "containerStatuses": []any{container(is)}},
	}
	change := observe.Change{Verb: verb, Old: w.states[name], New: state}
	e := w.f.observer.Event(change)
	seen, _, err := w.watch.cursor.get("pods", key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.states[name] = state
	if verb == event.Deleted {
		delete(w.states, name)
	}
	w.take(report{
		follower: w.f, event: e, change: change, signs: signsOf(e, seen.Trouble), forget: verb == event.Deleted, version: object.Version(version),
	}, w.now)
	if err := w.publish(w.t.Context(), true); err != nil {
		w.t.Fatal(err)
	}
}

// wants compares what was told since the last call.
func (w *ward) wants(lines ...string) {
	w.t.Helper()
	n := notes{Journal: w.watch.options.Journal}
	n.lines()
	var got []string
	ids := map[string]bool{}
	for _, e := range n.all {
		got = append(got, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", e.Verb, e.Key.Name, e.Summary), ": "))
		if ids[e.ID] {
			w.t.Errorf("two events have the ID %s", e.ID)
		}
		ids[e.ID] = true
		if (e.Verb == event.Failing || e.Verb == event.Resolved) && (len(e.Trouble) == 0 || !slices.Equal(e.Classes, []event.Class{event.Troubled})) {
			w.t.Errorf("%s: the troubles are %v, the classes %v", e.Verb, e.Trouble, e.Classes)
		}
	}
	if !slices.Equal(got, lines) {
		w.t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
}

func TestTroubleIsToldThoughTheStatusIsNot(t *testing.T) {
	w := newWard(t, Options{})
	w.becomes("a", event.Created, "ContainerCreating")
	for _, is := range []string{"running", "CrashLoopBackOff 1", "running 1", "CrashLoopBackOff 2", "running 2"} {
		w.now = w.now.Add(5 * time.Second)
		w.becomes("a", event.Updated, is)
	}
	w.passes(29 * time.Second)
	w.passes(time.Second)
	w.wants("created a", "failing a: container web CrashLoopBackOff: exit 1, 1 restart", "resolved a: container web runs again after 2 restarts in 15 s")
	if len(w.troubles.places) > 0 || w.troubles.tracker.Len() > 0 {
		t.Error("a Pod that is well is still tracked")
	}
}

func TestTroubleIsToldOnceOverRestarts(t *testing.T) {
	w := newWard(t, Options{})
	w.becomes("a", event.Created, "running")
	w.becomes("b", event.Created, "ImagePullBackOff")
	for i := range 5 {
		w.restart()
		w.now = w.now.Add(5 * time.Second)
		w.becomes("a", event.Updated, fmt.Sprintf("CrashLoopBackOff %d", i+1))
		w.restart()
		w.becomes("a", event.Updated, fmt.Sprintf("running %d", i+1))
	}
	w.restart()
	w.passes(20 * time.Second)
	w.restart()
	w.passes(10 * time.Second)
	w.becomes("b", event.Updated, "running")
	w.restart()
	w.passes(10 * time.Second)
	w.restart()
	w.passes(time.Hour)
	w.wants("created a", "created b", "failing b: container web ImagePullBackOff: nginx:x",
		"failing a: container web CrashLoopBackOff: exit 1, 1 restart", "resolved a: container web runs again after 5 restarts in 20 s",
		"resolved b: image of container web pulled after 55 s")
}

// What the informer has and no report has reached yet decides nothing: its report does.
func TestTimeAloneDoesNotGoAheadOfTheReports(t *testing.T) {
	w := newWard(t, Options{})
	w.becomes("a", event.Created, "ImagePullBackOff")
	w.becomes("a", event.Updated, "running")
	reported := w.states["a"]
	w.states["a"] = tree{"metadata": tree{"namespace": "shop", "name": "a", "uid": "uid-a", "resourceVersion": "999"}}
	w.passes(time.Minute)
	delete(w.states, "a")
	w.passes(time.Minute)
	w.wants("created a", "failing a: container web ImagePullBackOff: nginx:x")
	w.states["a"] = reported
	w.passes(time.Minute)
	w.wants("created a", "failing a: container web ImagePullBackOff: nginx:x", "resolved a: image of container web pulled after 0 s")
}

// A window holds a creation, and what follows it waits. The cursor stays with what is held.
func TestACreationComesBeforeItsTrouble(t *testing.T) {
	w := newWard(t, Options{Window: 10 * time.Second})
	w.becomes("a", event.Created, "ContainerCreating")
	w.becomes("a", event.Updated, "ImagePullBackOff")
	w.wants()
	w.passes(10 * time.Second)
	w.wants("created a", "failing a: container web ImagePullBackOff: nginx:x")
	w.becomes("b", event.Created, "ImagePullBackOff")
	w.becomes("b", event.Deleted, "ImagePullBackOff")
	w.wants("created a", "failing a: container web ImagePullBackOff: nginx:x", "deleted b: created and deleted again")
	if n := len(w.troubles.waiting); n > 0 {
		t.Errorf("the troubles of %d objects wait for ever", n)
	}
}

// While the settler holds an object, its cursor stays where it is, and goes on with its troubles.
func TestTroubleOfAnObjectThatIsHeld(t *testing.T) {
	w := newWard(t, Options{Settle: 20 * time.Second, Show: []event.Class{event.Status}})
	w.becomes("a", event.Created, "ContainerCreating")
	w.becomes("a", event.Updated, "ImagePullBackOff") // held, since it is not at rest
	w.becomes("a", event.Updated, "running")
	if cursors := w.cursors(); cursors != "pods 101, a 101" {
		t.Errorf("the cursors are %s", cursors)
	}
	w.passes(10 * time.Second) // the trouble is over
	w.passes(2 * time.Minute)  // and the settler lets go
	seen, _, err := w.watch.cursor.get("pods", object.Key{Namespace: "shop", Name: "a"})
	if err != nil || seen.Version != "103" || seen.Trouble != "" {
		t.Errorf("the cursor is %+v, %v", seen, err)
	}
}

func TestTroubleMeetsConditionsAsAnyEvent(t *testing.T) {
	w := newWard(t, Options{Keep: func(e *event.Event) (bool, error) {
		_, labelled := e.New["metadata"].(tree)["labels"]
		return e.Verb == event.Resolved && labelled && e.Old != nil, nil
	}})
	w.becomes("a", event.Created, "ImagePullBackOff")
	w.becomes("a", event.Updated, "running")
	w.passes(10 * time.Second)
	w.wants("resolved a: image of container web pulled after 0 s")
}

// A follower that ends takes its objects along: another one begins with what the cursor has.
func TestAFollowerThatEndsLeavesNoTroubleBehind(t *testing.T) {
	w := newWard(t, Options{})
	w.becomes("a", event.Created, "ImagePullBackOff")
	w.take(report{follower: w.f, ended: true}, w.now)
	if len(w.troubles.places) > 0 || w.troubles.tracker.Len() > 0 {
		t.Error("something is still tracked")
	}
	w.becomes("a", event.Updated, "ImagePullBackOff")
	w.wants("created a", "failing a: container web ImagePullBackOff: nginx:x")
}

// other replaces an object by another one of its name.
func (w *ward) other(name, uid string, verb event.Verb, is string) {
	w.t.Helper()
	w.version++
	version, key := fmt.Sprint(w.version), object.Key{Namespace: "shop", Name: name}
	state := tree{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": tree{"namespace": "shop", "name": name, "uid": uid, "resourceVersion": version},
		"spec":     tree{"nodeName": "node-1"}, "status": tree{"phase": "Running", "containerStatuses": []any{container(is)}},
	}
	change := observe.Change{Verb: verb, Old: w.states[name], New: state}
	e := w.f.observer.Event(change)
	seen, _, err := w.watch.cursor.get("pods", key)
	if err != nil {
		w.t.Fatal(err)
	}
	w.states[name] = state
	w.take(report{follower: w.f, event: e, change: change, signs: signsOf(e, seen.Trouble), version: object.Version(version)}, w.now)
	if err := w.publish(w.t.Context(), true); err != nil {
		w.t.Fatal(err)
	}
}

func TestTheTroubleOfAnObjectThatTookANameIsItsOwn(t *testing.T) {
	w := newWard(t, Options{})
	w.becomes("a", event.Created, "running")
	w.becomes("a", event.Updated, "CrashLoopBackOff 50")
	w.other("a", "uid-2", event.Replaced, "CrashLoopBackOff 3")
	w.now = w.now.Add(time.Second)
	w.other("a", "uid-2", event.Updated, "running 3")
	w.passes(time.Hour)
	n := notes{Journal: w.watch.options.Journal}
	n.lines()
	failing := 0
	for _, e := range n.all {
		if e.Verb == event.Failing && e.UID == "uid-2" {
			failing++
		}
		for _, x := range e.Trouble {
			if x.Restarts < 0 {
				t.Errorf("%s says %d restarts", e.Verb, x.Restarts)
			}
		}
	}
	if failing != 1 {
		t.Errorf("its trouble is told %d times", failing)
	}
}

func TestTheTroubleOfTheLastRunIsNotThatOfAnotherPod(t *testing.T) {
	w := newWard(t, Options{})
	w.becomes("a", event.Created, "running")
	w.becomes("a", event.Updated, "CrashLoopBackOff 50")
	w.publisher = newPublisher(w.watch)
	w.troubles.state = w.state
	w.other("a", "uid-2", event.Replaced, "running")
	w.passes(time.Hour)
	n := notes{Journal: w.watch.options.Journal}
	n.lines()
	for _, e := range n.all {
		if e.Verb == event.Resolved && e.UID == "uid-2" {
			t.Error("a Pod that had no trouble is well again")
		}
	}
}
