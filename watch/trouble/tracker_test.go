// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trouble

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// states are the states that a story uses, by their names.
var states = map[string]string{
	"creating": statuses(`{"name":"web","state":{"waiting":{"reason":"ContainerCreating"}}}`),
	"pulling":  statuses(`{"name":"web","image":"nginx:x","state":{"waiting":{"reason":"ErrImagePull"}}}`),
	"backoff":  statuses(`{"name":"web","image":"nginx:x","state":{"waiting":{"reason":"ImagePullBackOff"}}}`),
	"running":  statuses(`{"name":"web","state":{"running":{}}}`),
	"ended":    statuses(`{"name":"web","state":{"terminated":{"exitCode":1,"reason":"Error"}}}`),
	"running1": statuses(`{"name":"web","restartCount":1,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}`),
	"ended1":   statuses(`{"name":"web","restartCount":1,"state":{"terminated":{"exitCode":1,"reason":"Error"}}}`),
	"loop1":    statuses(`{"name":"web","restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}`),
	"running2": statuses(`{"name":"web","restartCount":2,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"reason":"Error","startedAt":"2026-03-04T12:00:00Z","finishedAt":"2026-03-04T12:01:00Z"}}}`),
	"loop2":    statuses(`{"name":"web","restartCount":2,"state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}`),
	"running3": statuses(`{"name":"web","restartCount":3,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}`),
	"done":     `{"spec":{"nodeName":"n","restartPolicy":"OnFailure"},"status":{"phase":"Succeeded","containerStatuses":[{"name":"web","restartCount":2,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}`,
	"deleting": `{"metadata":{"deletionTimestamp":"x"},"status":{"phase":"Running"}}`,
	"nowhere":  conditions("PodScheduled=False/Unschedulable/0/3 nodes are available"),
	"placed":   `{"spec":{"nodeName":"node-1"},"status":{"conditions":[{"type":"PodScheduled","status":"True"}]}}`,
	"unready":  `{"spec":{"nodeName":"node-1"},"status":{"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady","message":"containers with unready status: [web]"}]}}`,
	"ready":    `{"spec":{"nodeName":"node-1"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
	"both":     `{"spec":{"nodeName":"node-1"},"status":{"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}],"containerStatuses":[{"name":"web","image":"i","state":{"waiting":{"reason":"ErrImagePull"}}}]}}`,
	"pulled":   `{"spec":{"nodeName":"node-1"},"status":{"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady"}],"containerStatuses":[{"name":"web","image":"i","state":{"running":{}}}]}}`,
}

// A Node that joins is not ready for a while. One that was ready and is no more is told at once,
// however young it is.
func TestANodeThatIsYoung(t *testing.T) {
	node := func(ready, since string) []Sign {
		return Of(kind("Node"), parse(t, `{"metadata":{"creationTimestamp":"2026-03-04T12:00:00Z"},"status":{"conditions":[{"type":"Ready","status":"`+ready+`","lastTransitionTime":"`+since+`"}]}}`))
	}
	joins := node("False", "2026-03-04T12:00:00Z")
	ready, silent := node("True", "2026-03-04T12:00:10Z"), node("Unknown", "2026-03-04T12:01:00Z")
	o := Object{Kind: kind("Node"), Key: object.Key{Name: "node-1"}}
	tracker, now := New(), noon
	for i, step := range []struct {
		before, now []Sign
		after       time.Duration
		want        int // begun
	}{
		{nil, joins, 0, 0}, {joins, joins, 119 * time.Second, 0}, {joins, joins, time.Second, 1},
		{joins, ready, 0, 0}, {ready, ready, time.Minute, 0}, {ready, silent, 0, 1}, {silent, silent, time.Hour, 0},
	} {
		now = now.Add(step.after)
		if news := tracker.Observe(o, "u", step.before, step.now, now); len(news.Begun) != step.want {
			t.Errorf("step %d: %d troubles have begun, want %d", i, len(news.Begun), step.want)
		}
	}
}

// teller drives a Tracker, and notes what is told and when.
type teller struct {
	t       interface{ Fatalf(string, ...any) }
	tracker *Tracker
	now     time.Time
	signs   map[string][]Sign // of each Pod
	uids    map[string]types.UID
	told    []string
}

func newTeller(t interface{ Fatalf(string, ...any) }) *teller {
	return &teller{t: t, tracker: New(), now: noon, signs: map[string][]Sign{}, uids: map[string]types.UID{}}
}

func pod(name string) Object {
	return Object{Kind: kind("Pod"), Key: object.Key{Namespace: "n", Name: name}}
}

func (s *teller) note(name string, news News) {
	for _, n := range news.Begun {
		s.told = append(s.told, fmt.Sprintf("%s %s: %s", s.now.Sub(noon), name, n.Text))
	}
	for _, n := range news.Over {
		s.told = append(s.told, fmt.Sprintf("%s %s is over: %s", s.now.Sub(noon), name, n.Text))
	}
}

// passes lets time pass, as a caller does that observes what is due.
func (s *teller) passes(d time.Duration) {
	end := s.now.Add(d)
	for rounds := 0; ; rounds++ {
		next := s.tracker.Next()
		if next.IsZero() || next.After(end) {
			break
		}
		if next.After(s.now) {
			s.now = next
		}
		o, due := s.tracker.Due(s.now)
		if !due || rounds > 1000 {
			s.t.Fatalf("due at %s: %v, after %d rounds", next, due, rounds)
		}
		s.note(o.Key.Name, s.tracker.Observe(o, s.uids[o.Key.Name], s.signs[o.Key.Name], s.signs[o.Key.Name], s.now))
	}
	s.now = end
}

// is has an object in a state. Before the first one, nobody watched.
func (s *teller) is(name, uid, state string, t testing.TB) {
	signs := Of(kind("Pod"), parse(t, states[state]))
	s.note(name, s.tracker.Observe(pod(name), types.UID(uid), s.signs[name], signs, s.now))
	s.signs[name], s.uids[name] = signs, types.UID(uid)
}

// restart is the end of the process and the next one: the tracker is new, and knows what was encoded.
func (s *teller) restart() {
	after := New()
	for name, uid := range s.uids {
		after.Restore(pod(name), uid, s.tracker.Encode(pod(name)), s.now)
	}
	s.tracker = after
}

// story plays a script, a step a word:
//
//	5s              this much later
//	a:running       the Pod a is in a state; a:2!running is another Pod of that name
//	a:was-running   it was in that state before anybody watched
//	restart         the process ends, and the next one goes on
//	a:gone          it is deleted
func story(t testing.TB, script string) []string {
	s := newTeller(t)
	for step := range strings.FieldsSeq(script) {
		if step == "restart" {
			s.restart()
			continue
		}
		if d, err := time.ParseDuration(step); err == nil {
			s.passes(d)
			continue
		}
		name, state, _ := strings.Cut(step, ":")
		uid, state, other := strings.Cut(state, "!")
		if !other {
			uid, state = "1", uid
		}
		if before, ok := strings.CutPrefix(state, "was-"); ok {
			s.signs[name] = Of(kind("Pod"), parse(t, states[before]))
			continue
		}
		if other {
			s.signs[name] = nil
		}
		if state == "gone" {
			s.tracker.Forget(pod(name))
			delete(s.signs, name)
			continue
		}
		s.is(name, uid, state, t)
	}
	if s.tracker.Len() > 0 {
		s.told = append(s.told, fmt.Sprintf("tracked: %d", s.tracker.Len()))
	}
	return s.told
}

func TestEachTroubleIsToldOnce(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   []string
	}{
		"a start is none": {"a:creating 1m a:running 1h", nil},
		"an image that cannot be pulled, and then can": {"a:creating 1s a:pulling 10s a:backoff 1m a:pulling 5s a:backoff 1m a:running 1m",
			[]string{"1s a: container web ErrImagePull: nginx:x", "2m26s a is over: image of container web pulled after 2 min"}},
		"a crash, and no other": {"a:running 1h a:ended 1s a:running1 10m",
			[]string{"1h0m0s a: container web Error: exit 1", "1h0m31s a is over: container web runs again after 1 restart in 1 s"}},
		"a crash between two states": {"a:running 1h a:running1 10m",
			[]string{"1h0m0s a: container web Error: exit 1, 1 restart", "1h0m30s a is over: container web runs again after 1 restart in 0 s"}},
		"a crash loop is one episode, which becomes worse once": {"a:running 1s a:ended 1s a:running1 10s a:ended1 1s a:loop1 10s a:running2 60s a:loop2 20s a:running3 10m",
			[]string{"1s a: container web Error: exit 1", "13s a: container web CrashLoopBackOff: exit 1, 1 restart", "2m13s a is over: container web runs again after 3 restarts in 2 min"}},
		"a container must run twice as long as before": {"a:running1 1s a:loop1 1s a:running2 119s a:running2 1s",
			[]string{"1s a: container web CrashLoopBackOff: exit 1, 1 restart", "2m2s a is over: container web runs again after 1 restart in 1 s"}},
		"a loop from before anybody watched is known": {"a:was-loop1 a:running2 20s a:loop2 20s a:running3 10m",
			[]string{"1m10s a is over: container web runs again after 2 restarts in 40 s"}},
		"restarts from before are not counted":       {"a:was-running2 a:running2 1h", nil},
		"a restart that nobody can know of":          {"a:running2 1h", nil},
		"a Job's container that succeeds in the end": {"a:running1 a:loop1 5s a:done 1h", []string{"0s a: container web CrashLoopBackOff: exit 1, 1 restart", "5s a is over: container web succeeded after 1 restart in 5 s"}},
		"a Pod that is deleted":                      {"a:loop1 1s a:deleting 1h", []string{"0s a: container web CrashLoopBackOff: exit 1, 1 restart"}},
		"a Pod that is gone":                         {"a:loop1 1s a:gone 1h", []string{"0s a: container web CrashLoopBackOff: exit 1, 1 restart"}},
		"another Pod of that name":                   {"a:loop1 1s a:2!running 1h a:2!loop1", []string{"0s a: container web CrashLoopBackOff: exit 1, 1 restart", "1h0m1s a: container web CrashLoopBackOff: exit 1, 1 restart", "tracked: 1"}},
		"no Node for a moment":                       {"a:nowhere 2s a:placed 1m", nil},
		"no Node for long": {"a:nowhere 1m a:nowhere 1m a:placed 1m",
			[]string{"3s a: Unschedulable: 0/3 nodes are available", "2m0s a is over: scheduled on node-1 after 2 min"}},
		"not ready while it starts": {"a:unready 119s a:ready 1h", nil},
		"not ready for long": {"a:unready 1m a:unready 1h a:ready 1h",
			[]string{"2m0s a: Ready False (ContainersNotReady): containers with unready status: [web]", "1h1m10s a is over: Ready again after 61 min"}},
		"readiness that comes and goes": {"a:ready a:unready 3m a:ready 5s a:unready 5s a:ready 5s a:unready 3m a:ready 1h",
			[]string{"2m0s a: Ready False (ContainersNotReady): containers with unready status: [web]", "6m25s a is over: Ready again after 6 min"}},
		"not ready because of something else is not told": {"a:both 10m a:running 1h",
			[]string{"0s a: container web ErrImagePull: i", "10m10s a is over: image of container web pulled after 10 min"}},
		"not ready when the other trouble is over": {"a:both 10m a:pulled 1h",
			[]string{"0s a: container web ErrImagePull: i", "10m10s a is over: image of container web pulled after 10 min", "12m10s a: Ready False (ContainersNotReady)", "tracked: 1"}},
		"a pull after a crash leaves the crash open": {"a:loop1 1s a:pulling 1h a:running2 1h",
			[]string{"0s a: container web CrashLoopBackOff: exit 1, 1 restart", "1s a: container web ErrImagePull: nginx:x",
				"1h0m11s a is over: image of container web pulled after 60 min", "1h2m1s a is over: container web runs again after 1 restart in 60 min"}},

		"a restart of the watch repeats nothing": {"a:loop1 restart a:loop1 1s restart a:running2 restart 1s a:loop2 restart 1h a:running3 restart 10s restart 10s restart 10s",
			[]string{"0s a: container web CrashLoopBackOff: exit 1, 1 restart", "1h0m32s a is over: container web runs again after 2 restarts in 60 min"}},
		"a restart of the watch while something may pass": {"a:nowhere 2s restart 10s a:nowhere 1s restart a:placed",
			[]string{"3s a: Unschedulable: 0/3 nodes are available", "13s a is over: scheduled on node-1 after 13 s"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := story(t, test.script); !slices.Equal(got, test.want) {
				t.Errorf("%s\ntold:\n\t%s\nwant:\n\t%s", test.script, strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
			}
		})
	}
}

// A watch that ends and begins anew after any step tells what one tells that goes on. Each begin is
// told before its end, and the loop of a caller comes to its end.
func TestARestartAnywhereTellsTheSame(t *testing.T) {
	names := make([]string, 0, len(states))
	for name := range states {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(r *rapid.T) {
		one, other := newTeller(r), newTeller(r)
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			d := time.Duration(rapid.SampledFrom([]int{0, 1, 5, 10, 30, 60, 130, 700}).Draw(r, "seconds")) * time.Second
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "pod")
			uid := rapid.SampledFrom([]string{"1", "1", "1", "1", "2"}).Draw(r, "uid")
			state := rapid.SampledFrom(names).Draw(r, "state")
			for _, s := range []*teller{one, other} {
				s.passes(d)
				s.is(name, uid, state, t)
			}
			if rapid.Bool().Draw(r, "restart") {
				other.restart()
			}
		}
		one.passes(time.Hour)
		other.passes(time.Hour)
		slices.Sort(one.told) // of two Pods that are due at once, either may be first
		slices.Sort(other.told)
		if !slices.Equal(one.told, other.told) {
			r.Fatalf("told:\n\t%s\nwith restarts:\n\t%s", strings.Join(one.told, "\n\t"), strings.Join(other.told, "\n\t"))
		}
	})
}

func TestOnlySoManyObjectsAreTracked(t *testing.T) {
	tracker := New()
	tracker.limit = 10
	signs := Of(kind("Pod"), parse(t, states["nowhere"]))
	for i := range 100 {
		tracker.Observe(pod(fmt.Sprint(i)), "u", nil, signs, noon)
	}
	if tracker.Len() != 10 || len(tracker.due) != 10 {
		t.Errorf("%d objects are tracked, %d of them due, want 10", tracker.Len(), len(tracker.due))
	}
	if !tracker.Has(pod("99")) {
		t.Error("the newest one is not tracked")
	}
}

// What was encoded may come from a file that somebody has changed.
func FuzzRestore(f *testing.F) {
	tracker := New()
	tracker.Observe(pod("a"), "u", nil, Of(kind("Pod"), parse(f, states["loop1"])), noon)
	f.Add(tracker.Encode(pod("a")))
	f.Add(`[{"name":"condition Ready","since":9223372036854775807,"good":-9223372036854775808,"reported":-1,"patience":-5,"quiet":9223372036854775807}]`)
	f.Add(`[{"name":"scheduling","since":1,"minor":true,"unclear":true},{"name":"scheduling","since":1}]`)
	f.Fuzz(func(t *testing.T, encoded string) {
		for _, state := range []string{"running", "loop1", "nowhere", "unready"} {
			s := newTeller(t)
			s.tracker.Restore(pod("a"), "u", encoded, noon)
			if len(s.tracker.Encode(pod("a"))) > mostEncoded {
				t.Fatal("it is encoded in more bytes than the journal has room for")
			}
			s.passes(time.Hour)
			s.is("a", "u", state, t)
			s.passes(time.Hour)
			s.is("a", "u", "running", t)
			s.passes(time.Hour)
			s.passes(24 * time.Hour)
			if s.tracker.Len() > 0 {
				t.Fatalf("a Pod that is well is tracked for ever: %s", s.tracker.Encode(pod("a")))
			}
		}
	})
}
