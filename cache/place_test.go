// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// etcd deletes all keys of a lease in one revision, and Events share leases.
func TestEventsThatShareAVersionAreAllTold(t *testing.T) {
	state := func() []fakeEvent {
		return []fakeEvent{added(pod("a", "1")), added(pod("b", "2")), added(pod("c", "3")), allSent("5")}
	}
	for _, c := range []struct {
		name    string
		watches [][]fakeEvent // after the state
		asked   string
		told    string
		store   string
	}{
		{
			name:    "in one watch",
			watches: [][]fakeEvent{{deleted(pod("a", "6")), deleted(pod("b", "6")), deleted(pod("c", "6"))}},
			told:    "Deleted a 6\nDeleted b 6\nDeleted c 6",
		},
		{
			name: "in a watch that breaks in their middle: it resumes before them, and none is delivered twice",
			watches: [][]fakeEvent{
				{deleted(pod("a", "6")), modified(pod("b", "6")), failing(errNoConnection)},
				{deleted(pod("a", "6")), modified(pod("b", "6")), deleted(pod("c", "6")), added(pod("d", "7"))},
			},
			asked: "watch from \"5\"",
			told:  "Deleted a 6\nUpdated b 2→6\nDeleted c 6\nAdded d 7",
			store: "b@6 d@7",
		},
		{
			name: "in a watch that ends in order in their middle",
			watches: [][]fakeEvent{
				{modified(pod("a", "6")), modified(pod("b", "7")), {}},
				{modified(pod("b", "7")), modified(pod("c", "7"))},
			},
			asked: "watch from \"6\"",
			told:  "Updated a 1→6\nUpdated b 2→7\nUpdated c 3→7",
			store: "a@6 b@7 c@7",
		},
		{
			name: "and end with a later event",
			watches: [][]fakeEvent{
				{deleted(pod("a", "6")), deleted(pod("b", "6")), modified(pod("c", "8")), failing(errNoConnection)},
				{modified(pod("c", "8"))},
			},
			asked: "watch from \"6\"",
			told:  "Deleted a 6\nDeleted b 6\nUpdated c 3→8",
			store: "c@8",
		},
		{
			name: "and end with a bookmark",
			watches: [][]fakeEvent{
				{deleted(pod("a", "6")), deleted(pod("b", "6")), bookmark("6"), failing(errNoConnection)},
				{modified(pod("c", "8"))},
			},
			asked: "watch from \"6\"",
			told:  "Deleted a 6\nDeleted b 6\nUpdated c 3→8",
			store: "c@8",
		},
		{
			name: "and the place before them expires: the state is listed, no older than they are",
			watches: [][]fakeEvent{
				{deleted(pod("a", "6")), failing(errNoConnection)},
				{failing(errExpired)},
				{added(pod("c", "3")), allSent("9")},
			},
			asked: "watch from \"5\"\nwatch list from \"6\"",
			told:  "Deleted a 6\nDeleted b 2 stale",
			store: "c@3",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var answers []any
				for n, events := range c.watches {
					if n == 0 {
						events = append(state(), events...)
					}
					w := watching(events...)
					if events[len(events)-1] == (fakeEvent{}) {
						w = watching(events[:len(events)-1]...)
						close(w.events)
					}
					answers = append(answers, w)
				}
				source, informer := newTestInformer(t, answers...)
				var told told
				add(t, informer, told.handler, HandlerOptions{EveryStep: true})
				defer start(t, informer)()
				time.Sleep(time.Hour)
				synctest.Wait()
				want(t, "asked", source.log(), strings.TrimSpace("watch list from \"\"\n"+c.asked))
				want(t, "store", contents(informer), c.store)
				_, after, _ := strings.Cut(told.take(), "Added c 3 initial\n")
				want(t, "told", after, c.told)
			})
		})
	}
}

// A snapshot says up to which version nothing of it can be missing.
func TestASnapshotSaysUpToWhichVersionItIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), allSent("5"))
		_, informer := newTestInformer(t, w)
		defer start(t, informer)()
		synctest.Wait()
		check := func(version, complete string) {
			t.Helper()
			synctest.Wait()
			s := informer.Snapshot()
			if string(s.Version()) != version || string(s.Complete()) != complete {
				t.Errorf("version %s, complete up to %s; want %s and %s", s.Version(), s.Complete(), version, complete)
			}
		}
		check("5", "5")
		w.events <- modified(pod("a", "7"))
		check("7", "5")
		w.events <- deleted(pod("b", "7"))
		check("7", "5")
		w.events <- added(pod("c", "9"))
		check("9", "7")
		NewIndex(informer, func(Item[*corev1.Pod]) ([]string, error) { return nil, nil })
		check("9", "7")
		w.events <- bookmark("9")
		check("9", "9")
		w.events <- bookmark("12")
		check("12", "12")
	})
}

// A history of groups, some of one change and some of many, is read through watches that
// break anywhere. What the store and a handler of every step know in the end is the history's
// end, and the handler was notified of each step once.
func TestGroupsThatAreCutAnywhereLoseAndDoubleNothing(t *testing.T) {
	const seeds = 200
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			type step struct {
				version int
				event   fakeEvent
			}
			var history []step
			there, steps := map[string]string{}, []string{}
			for version := 6; version < 30; version++ {
				names := []string{"a", "b", "c", "d", "e"}
				random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
				for _, name := range names[:1+random.IntN(len(names))] { // one change a name: etcd allows no more
					p := pod(name, fmt.Sprint(version))
					e := modified(p)
					if _, known := there[name]; known && random.IntN(2) == 0 {
						e = deleted(p)
						delete(there, name)
						steps = append(steps, fmt.Sprint("Deleted ", name, " ", version))
					} else if before, known := there[name]; known {
						there[name] = p.ResourceVersion
						steps = append(steps, fmt.Sprint("Updated ", name, " ", before, "→", version))
					} else {
						there[name] = p.ResourceVersion
						steps = append(steps, fmt.Sprint("Added ", name, " ", version))
					}
					history = append(history, step{version, e})
				}
			}
			source := &historySource{scripted: scripted{t: t}, from: func(after int) []fakeEvent {
				if after < 0 {
					return []fakeEvent{allSent("5"), failing(errNoConnection)}
				}
				var events []fakeEvent
				for _, s := range history {
					if s.version > after {
						events = append(events, s.event)
					}
				}
				// Any watch may break anywhere; a few come to the end.
				if random.IntN(5) > 0 {
					events = append(events[:random.IntN(len(events)+1)], failing(errNoConnection))
				}
				return events
			}}
			informer := newInformerOf(source)
			var told told
			add(t, informer, told.handler, HandlerOptions{EveryStep: true})
			stop := start(t, informer)
			time.Sleep(10 * time.Hour)
			synctest.Wait()
			stop()
			var state []string
			for name, version := range there {
				state = append(state, name+"@"+version)
			}
			slices.Sort(state)
			if have := contents(informer); have != strings.Join(state, " ") {
				t.Fatalf("seed %d: the store has %s, want %s", seed, have, state)
			}
			if have := told.take(); have != strings.Join(steps, "\n") {
				t.Fatalf("seed %d: told:\n%s\nwant:\n%s", seed, have, strings.Join(steps, "\n"))
			}
		})
	}
}
