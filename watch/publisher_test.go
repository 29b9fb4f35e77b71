// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
	"github.com/setpoint-io/setpoint/watch/observe"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// desk is a publisher with one follower, whose time is that of the test.
type desk struct {
	*publisher
	t       *testing.T
	f       *follower
	now     time.Time
	version int
	phase   string // of the Pods that change
}

func newDesk(t *testing.T, limit int, o Options) *desk {
	t.Helper()
	j, _, err := journal.Open(filepath.Join(t.TempDir(), "cursor"), journal.Options{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	o.Journal, o.Route = j, toBook
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	w := &Watch{options: o, log: slog.New(slog.NewTextHandler(t.Output(), nil)), cursor: cursor{j}}
	d := &desk{publisher: newPublisher(w), t: t, now: noon, version: 100, f: &follower{watch: w, name: "pods", kind: event.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}}}
	d.f.begun.Store(true)
	d.f.observer = observe.New(observe.Options{Kind: d.f.kind, Clock: func() time.Time { return d.now }})
	return d
}

// happens is a change of an object, of a class.
func (d *desk) happens(name string, verb event.Verb, class event.Class) {
	d.t.Helper()
	d.version++
	version := strconv.Itoa(d.version)
	e := &event.Event{
		ID: version, Time: d.now, Verb: verb, Kind: d.f.kind, Key: object.Key{Namespace: "shop", Name: name}, UID: types.UID("uid-" + name), Version: version,
		Classes: []event.Class{class}, New: tree{"apiVersion": "v1", "kind": "Pod", "status": tree{"phase": d.phase}},
	}
	d.take(report{
		follower: d.f, event: e, change: observe.Change{Verb: verb, New: e.New}, seen: journal.Seen{UID: e.UID, Version: version}, forget: verb == event.Deleted, version: object.Version(version),
	}, d.now)
	if err := d.publish(d.t.Context(), true); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) passes(time time.Duration) {
	d.t.Helper()
	d.now = d.now.Add(time)
	d.release(d.settler.Due(d.now))
	d.observeDue(d.now)
	if err := d.publish(d.t.Context(), true); err != nil {
		d.t.Fatal(err)
	}
}

// cursors are what the journal knows: "pods 105" for the kind, "a 103" for an object.
func (d *desk) cursors() string {
	d.t.Helper()
	j := d.watch.options.Journal
	version, _ := j.Selection("pods")
	all := []string{"pods " + version}
	objects, failed := j.Objects("pods")
	for key, seen := range objects {
		all = append(all, key.Name+" "+seen.Version)
	}
	if err := failed(); err != nil {
		d.t.Fatal(err)
	}
	return strings.Join(all, ", ")
}

func (d *desk) want(cursors string, lines ...string) {
	d.t.Helper()
	n := notes{Journal: d.watch.options.Journal}
	if got := n.lines(); !slices.Equal(got, lines) {
		d.t.Errorf("told %q, want %q", got, lines)
	}
	if got := d.cursors(); got != cursors {
		d.t.Errorf("the cursors are %s, want %s", got, cursors)
	}
}

func TestTheCursorNeverGoesPastWhatIsHeldBack(t *testing.T) {
	d := newDesk(t, 0, Options{Window: 10 * time.Second})
	d.happens("a", event.Updated, event.Status) // nobody is told
	d.want("pods 101, a 101")
	d.happens("a", event.Updated, event.Content) // held
	d.want("pods 101, a 101")
	d.happens("a", event.Updated, event.Heartbeat) // hidden, and behind what is held
	d.happens("b", event.Updated, event.Heartbeat)
	d.want("pods 101, a 101, b 104")
	d.passes(10 * time.Second)
	d.want("pods 104, a 103, b 104", "updated pods a [content]")
	d.happens("a", event.Updated, event.Content)
	d.happens("a", event.Deleted, event.Content) // lets everything go
	d.want("pods 106, b 104", "updated pods a [content]", "deleted pods a, merged 2")
	if len(d.held) != 0 {
		t.Errorf("%d objects are still held", len(d.held))
	}
}

func TestWhatIsNotBegunSaysNothingOfItsKind(t *testing.T) {
	d := newDesk(t, 0, Options{})
	d.f.begun.Store(false)
	d.happens("a", event.Created, event.Content)
	d.want("pods , a 101", "created pods a")
	if _, known := d.watch.options.Journal.Selection("pods"); known {
		t.Error("the kind is known before everything that was there was seen")
	}
}

func TestClassesThatNobodyAskedForAreHidden(t *testing.T) {
	for _, c := range []struct {
		show []event.Class
		want []string
	}{
		{nil, []string{"content", "metadata"}},
		{[]event.Class{event.Status}, []string{"content", "metadata", "status"}},
		{[]event.Class{event.Heartbeat, event.Version}, []string{"content", "metadata", "heartbeats", "versions"}},
	} {
		d := newDesk(t, 0, Options{Show: c.show})
		var want []string
		for _, class := range []event.Class{event.Content, event.Metadata, event.Status, event.Heartbeat, event.Version} {
			d.happens("a", event.Updated, class)
			if slices.Contains(c.want, string(class)) {
				want = append(want, fmt.Sprintf("updated pods a [%s]", class))
			}
		}
		d.want("pods 105, a 105", want...)
	}
}

func TestAConditionThatCannotBeDecidedIsCountedAndNotMet(t *testing.T) {
	d := newDesk(t, 0, Options{Keep: func(e *event.Event) (bool, error) {
		if e.Key.Name == "odd" {
			return true, errors.New("no such key: spec")
		}
		return e.Key.Name == "a", nil
	}})
	for _, name := range []string{"a", "b", "odd"} {
		d.happens(name, event.Created, event.Content)
	}
	d.want("pods 103, a 101, b 102, odd 103", "created pods a")
	if s := d.watch.counts.failed.Load(); s != 1 {
		t.Errorf("%d failures are counted, want 1", s)
	}
}

// The status of an object that is on its way belongs to what is told of it, though status
// alone is hidden.
func TestAnObjectThatSettlesIsToldOnce(t *testing.T) {
	d := newDesk(t, 0, Options{Settle: 5 * time.Second})
	d.phase = "Pending"
	d.happens("a", event.Updated, event.Content)
	for _, d.phase = range []string{"Pending", "Pending", "Succeeded"} {
		d.now = d.now.Add(time.Second)
		d.happens("a", event.Updated, event.Status)
	}
	d.happens("b", event.Updated, event.Status)
	d.passes(time.Minute)
	d.want("pods 105, a 104, b 105", "settled pods a, merged 4")
}

func TestASinkThatIsFullHoldsEverythingUpAndLosesNothing(t *testing.T) {
	d := newDesk(t, 2, Options{})
	d.happens("a", event.Created, event.Content)
	d.happens("b", event.Created, event.Content)
	ctx, cancel := context.WithCancel(t.Context())
	d.take(report{follower: d.f, event: &event.Event{ID: "x", Verb: event.Created, Kind: d.f.kind, Key: object.Key{Name: "c"}, Version: "200", Time: noon}, version: "200", seen: journal.Seen{Version: "200"}}, noon)
	cancel()
	if err := d.publish(ctx, true); err == nil || !strings.Contains(err.Error(), "book") {
		t.Fatalf("the error is %v, want one that names the sink", err)
	}
	d.want("pods 102, a 101, b 102", "created pods a", "created pods b")
	if err := d.watch.options.Journal.Ack("book", 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := d.publish(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	d.want("pods 200, c 200, a 101, b 102", "created pods c")
}

// However often an object changes while its changes are held back, there is only so much to
// remember of it.
func TestWhatIsHeldBackDoesNotPileUp(t *testing.T) {
	d := newDesk(t, 0, Options{Window: time.Hour})
	d.happens("b", event.Updated, event.Heartbeat)
	for range 100 {
		d.happens("a", event.Updated, event.Content)
		d.happens("a", event.Updated, event.Heartbeat)
	}
	for object, waiting := range d.held {
		if len(waiting) > 3 { // the first, the last, and one that is hidden
			t.Errorf("of %v, %d changes are kept", object.key, len(waiting))
		}
	}
	d.want("pods 101, b 101")
	d.passes(time.Hour)
	d.want("pods 301, a 301, b 101", "updated pods a [content], merged 100")
}

// A state that is told of twice, as after a server was set back, leaves nothing behind that
// the cursor would wait for.
func TestAStateThatIsToldOfTwiceIsHeldBackOnce(t *testing.T) {
	d := newDesk(t, 0, Options{Window: time.Minute})
	d.happens("a", event.Updated, event.Content)
	d.version--
	d.happens("a", event.Updated, event.Content)
	d.passes(time.Minute)
	d.want("pods 101, a 101", "updated pods a [content], merged 2")
	if len(d.held) != 0 {
		t.Errorf("%d objects are still held", len(d.held))
	}
}

// Whenever the process dies: what no cursor is past is found again, and so each change that
// somebody wants to see must have been told that a cursor is past.
func TestNoCursorIsPastWhatWasNotTold(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		o := Options{Window: time.Duration(random.IntN(2)*10) * time.Second, Settle: time.Duration(random.IntN(2)*3) * time.Second}
		d := newDesk(t, 0, o)
		other := &follower{watch: d.watch, name: "others", kind: event.Kind{Group: "x", Version: "v1", Kind: "Other", Resource: "others"}, observer: d.f.observer}
		other.begun.Store(true)
		followers := []*follower{d.f, other}
		n := notes{Journal: d.watch.options.Journal}
		var wanted []report // all that somebody wants to see
		there := map[id]int{}
		lives := 0
		for range 150 {
			f := followers[random.IntN(2)]
			of := id{f.kind, object.Key{Namespace: "shop", Name: string(rune('a' + random.IntN(3)))}}
			e := &event.Event{Time: d.now, Verb: event.Updated, Kind: f.kind, Key: of.key, Classes: []event.Class{event.Content}}
			switch what := random.IntN(10); {
			case there[of] == 0:
				lives++
				e.Verb, there[of] = event.Created, lives
			case what == 0:
				e.Verb = event.Deleted
			case what == 1:
				lives++
				e.Verb, there[of] = event.Replaced, lives
			case what < 5:
				e.Classes = []event.Class{event.Heartbeat}
			}
			e.UID = types.UID(strconv.Itoa(there[of]))
			phase := []string{"Pending", "Running", "Succeeded"}[random.IntN(3)]
			e.New = tree{"apiVersion": f.kind.APIVersion(), "kind": f.kind.Kind, "metadata": tree{"name": e.Key.Name}, "status": tree{"phase": phase}}
			if e.Verb == event.Deleted {
				there[of], e.Old, e.New = 0, e.New, nil
			}
			d.version++
			e.Version = strconv.Itoa(d.version)
			e.ID = e.Version
			what := report{follower: f, event: e, change: observe.Change{Verb: e.Verb, Old: e.Old, New: e.New}, seen: journal.Seen{UID: e.UID, Version: e.Version}, forget: e.Verb == event.Deleted, version: object.Version(e.Version)}
			if e.Verb != event.Updated || shown(e.Classes, nil) {
				wanted = append(wanted, what)
			}
			d.take(what, d.now)
			switch random.IntN(40) {
			case 0:
				d.take(report{follower: f, ended: true}, d.now)
			case 1:
				d.take(report{follower: f, stepless: true}, d.now)
			default:
				d.now = d.now.Add(time.Duration(random.IntN(4000)) * time.Millisecond)
				d.release(d.settler.Due(d.now))
			}
			if random.IntN(3) == 0 {
				continue
			}
			if err := d.publish(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			n.lines()
			reached := map[id]object.Version{}
			for _, e := range n.all {
				of, version := id{e.Kind, e.Key}, object.Version(e.Version)
				if reached[of].AtLeast(version) {
					t.Fatalf("%v is told of at %s after %s", of.key, version, reached[of])
				}
				reached[of] = version
			}
			for _, w := range wanted {
				if reached[id{w.event.Kind, w.event.Key}].AtLeast(w.version) {
					continue
				}
				if cursor, _ := n.Selection(w.follower.name); object.Version(cursor).AtLeast(w.version) {
					t.Fatalf("the cursor of %s is at %s, and the change at %s is not told", w.follower.name, cursor, w.version)
				}
				if seen, had, err := n.Get(w.follower.name, w.event.Key); err != nil || had && object.Version(seen.Version).AtLeast(w.version) {
					t.Fatalf("the cursor of %v is at %s, and the change at %s is not told (%v)", w.event.Key, seen.Version, w.version, err)
				}
			}
		}
		d.release(d.settler.Flush())
		if len(d.held) != 0 {
			t.Fatalf("%d objects are still held", len(d.held))
		}
	}
}

// A kind that is followed anew, in another version, is told of in order: what its first
// follower had is told when he ends.
func TestWhatIsHeldIsToldWhenItsFollowerEnds(t *testing.T) {
	d := newDesk(t, 0, Options{Window: time.Hour})
	d.happens("a", event.Updated, event.Content)
	first := d.f
	d.take(report{follower: first, ended: true}, d.now)
	d.f = &follower{watch: first.watch, observer: first.observer, name: "pods", kind: event.Kind{Version: "v2", Kind: "Pod", Resource: "pods", Namespaced: true}}
	d.f.begun.Store(true)
	d.happens("a", event.Updated, event.Content)
	d.happens("a", event.Deleted, event.Content)
	d.want("pods 103", "updated pods a [content]", "deleted pods a, merged 2")
	if len(d.versions) != 1 {
		t.Errorf("%d followers are known, want 1", len(d.versions))
	}
}

// An object that is larger than a journal takes is told of with less; it does not end the
// watch.
func TestWhatIsTooLargeForTheJournalIsToldWithLess(t *testing.T) {
	small, large := "x", strings.Repeat("\x01", 1<<20) // six bytes each in JSON
	many := make([]event.Field, 200_000)
	for i := range many {
		many[i] = event.Field{Path: fmt.Sprintf("data.k%d", i), Op: event.Add, Class: event.Content, To: ""}
	}
	for name, c := range map[string]struct {
		object string
		fields []event.Field
		want   string
	}{
		"its states":           {large, []event.Field{{Path: "data.x", Op: event.Replace, From: small, To: small}}, "updated pods a [content] replace data.x:x→x"},
		"its fields":           {small, []event.Field{{Path: "data.x", Op: event.Replace, From: large, To: large}, {Path: "data.y", Op: event.Add, To: small}}, "updated pods a [content] replace data.x:(too large)→(too large) add data.y:<nil>→x"},
		"the number of fields": {small, many, "updated pods a [content]"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, 0, Options{WithObjects: true})
			state := tree{"data": tree{"x": c.object}}
			e := &event.Event{ID: "1", Verb: event.Updated, Kind: d.f.kind, Key: object.Key{Name: "a"}, Version: "101", Classes: []event.Class{event.Content}, Fields: c.fields, Old: state, New: state}
			d.take(report{follower: d.f, event: e, seen: journal.Seen{Version: "101"}, version: "101"}, d.now)
			if err := d.publish(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			d.want("pods 101, a 101", c.want)
		})
	}
}

// What changes are merged to is what differs between the states before and after, with
// what only one in the middle has changed, and with nothing hidden shown.
func TestWhatIsMergedIsTheDifferenceOfTheStates(t *testing.T) {
	d := newDesk(t, 0, Options{Window: time.Minute})
	rule, err := observe.ParseRule("pods:spec.token")
	if err != nil {
		t.Fatal(err)
	}
	d.f.observer = observe.New(observe.Options{Kind: d.f.kind, Hide: []observe.Rule{rule}, Clock: func() time.Time { return d.now }})
	state := func(version, replicas int, image, token string) tree {
		return tree{
			"apiVersion": "v1", "kind": "Pod", "metadata": tree{"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": strconv.Itoa(version)},
			"spec": tree{"replicas": int64(replicas), "image": image, "token": token},
		}
	}
	states := []tree{state(1, 1, "web:1", "canary1"), state(2, 2, "web:1", "canary1"), state(3, 2, "web:2", "canary2"), state(4, 3, "web:2", "canary2")}
	for i, now := range states[1:] {
		change := observe.Change{Verb: event.Updated, Old: states[i], New: now}
		e := d.f.observer.Event(change)
		d.take(report{follower: d.f, event: e, change: change, seen: journal.Seen{UID: e.UID, Version: e.Version}, version: object.Version(e.Version)}, d.now)
	}
	d.passes(time.Minute)
	n := notes{Journal: d.watch.options.Journal}
	got := strings.Join(n.lines(), "\n")
	for _, part := range []string{"updated pods a [content]", " replace spec.image:web:1→web:2", " replace spec.replicas:1→3", " replace spec.token:(hidden ", ", merged 3"} {
		if !strings.Contains(got, part) {
			t.Errorf("told %q, want %q in it", got, part)
		}
	}
	if strings.Contains(got, "canary") {
		t.Errorf("told %q, a hidden value", got)
	}
}

// What came or went is described, where the object does not go with the event.
func TestWhatGoesIntoTheJournalWithoutItsObjectIsDescribed(t *testing.T) {
	for _, c := range []struct {
		withObjects bool
		want        []string
	}{{false, []string{"a Pod", "", "a Pod"}}, {true, []string{"", "", ""}}} {
		d := newDesk(t, 0, Options{WithObjects: c.withObjects, Words: func(*event.Event) string { return "a Pod" }})
		d.happens("a", event.Created, event.Content)
		d.happens("a", event.Updated, event.Content)
		d.happens("a", event.Deleted, event.Content)
		entries, err := d.watch.options.Journal.Next("book", 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range entries {
			e, err := event.Decode(entry.Data)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Summary)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("with objects: %v: described as %q, want %q", c.withObjects, got, c.want)
		}
	}
}

func TestAKindThatGoesBeforeItIsReadIsNotWaitedFor(t *testing.T) {
	d := newDesk(t, 0, Options{})
	var log strings.Builder
	d.watch.log = slog.New(slog.NewTextHandler(&log, nil))
	pods, gadgets := place{plural: "pods"}, place{plural: "gadgets"}
	going := &follower{watch: d.watch, name: "gadgets"}
	d.watch.followers = map[place]*follower{pods: d.f, gadgets: going}
	said := func() int { return strings.Count(log.String(), "what was there has been seen") }
	d.take(report{follower: d.f, caughtUp: true}, d.now)
	if said() != 0 {
		t.Error("it is said before both were read")
	}
	delete(d.watch.followers, gadgets)
	d.take(report{follower: going, ended: true}, d.now)
	if said() != 1 || !d.isCaughtUp() {
		t.Errorf("after one of two kinds was read and the other went: said %d times, it holds: %t", said(), d.isCaughtUp())
	}
	delete(d.watch.followers, pods)
	d.take(report{follower: d.f, ended: true}, d.now)
	if said() != 1 {
		t.Errorf("said %d times after one that was read went", said())
	}
}

// A rollout may take longer than the settler holds an update.
func TestAnObjectThatTakesLongerThanAMinuteSettlesToo(t *testing.T) {
	d := newDesk(t, 0, Options{Settle: 5 * time.Second})
	d.phase = "Pending"
	d.happens("a", event.Updated, event.Content)
	for range 8 {
		d.passes(10 * time.Second)
		d.happens("a", event.Updated, event.Status)
	}
	d.phase = "Succeeded"
	d.passes(10 * time.Second)
	d.happens("a", event.Updated, event.Status)
	d.passes(2 * time.Minute)
	n := notes{Journal: d.watch.options.Journal}
	got := n.lines()
	if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "settled ") }) {
		t.Errorf("it is never told that the object has settled: %q", got)
	}
	if len(d.underway) != 0 {
		t.Errorf("%d objects are said to be on their way", len(d.underway))
	}
	d.happens("a", event.Updated, event.Status)
	d.passes(2 * time.Minute)
	if more := n.lines(); len(more) != len(got) {
		t.Errorf("a status of an object at rest is told: %q", more[len(got):])
	}
}
