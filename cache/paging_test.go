// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

func TestPagesAreReadToTheirEndAndAreOneState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, informer := newTestInformer(t,
			errNoWatchList,
			fakeList{version: "5", objects: []object.Object{pod("a", "1")}, next: "there"},
			fakeList{version: "5", objects: []object.Object{pod("b", "2")}, next: "further"},
			fakeList{version: "5", objects: []object.Object{pod("c", "3")}},
			watching())
		informer.informer.reflect.pageSize = 1
		var told told
		if _, err := informer.AddHandler(told.handler, HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		defer start(t, informer)()
		synctest.Wait()
		want(t, "asked", source.log(), "watch list from \"\"\nlist from \"\" limit 1\nlist from \"\" limit 1 continue \"there\"\n"+
			"list from \"\" limit 1 continue \"further\"\nwatch from \"5\"")
		want(t, "store", contents(informer), "a@1 b@2 c@3")
		want(t, "told", told.take(), "Added a 1 initial\nAdded b 2 initial\nAdded c 3 initial")
	})
}

func TestAPageThatExpiredLeadsToAWholeListAndTheHalfIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, informer := newTestInformer(t,
			errNoWatchList,
			fakeList{version: "5", objects: []object.Object{pod("gone", "1")}, next: "there"},
			errExpired,
			fakeList{version: "8", objects: []object.Object{pod("a", "7")}},
			watching())
		informer.informer.reflect.pageSize = 1
		defer start(t, informer)()
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "asked", source.log(), "watch list from \"\"\nlist from \"\" limit 1\nlist from \"\" limit 1 continue \"there\"\n"+
			"list from \"\"\nwatch from \"8\"")
		want(t, "store", contents(informer), "a@7")
		if n := len(informer.informer.archive.families); n != 1 {
			t.Errorf("%d families are kept, want that of the one object", n)
		}
	})
}

// Where the whole list fails too, the next try begins with pages, after a pause.
func TestPagesThatExpireEachTimeAreNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []any
		for range 3 {
			answers = append(answers, errNoWatchList, fakeList{version: "5", objects: []object.Object{pod("a", "1")}, next: "there"}, errExpired, errNoConnection)
		}
		answers = append(answers, errNoWatchList, fakeList{version: "5", objects: []object.Object{pod("a", "1")}, next: "there"}, errExpired,
			errExpired, // a whole list may expire as well
			errNoWatchList, fakeList{version: "6", objects: []object.Object{pod("a", "1")}}, watching())
		source, informer := newTestInformer(t, answers...)
		informer.informer.reflect.pageSize = 1
		defer start(t, informer)()
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "store", contents(informer), "a@1")
		if n := strings.Count(source.log(), "continue"); n != 4 {
			t.Errorf("%d second pages were requested, want one a try:\n%s", n, source.log())
		}
	})
}

func TestAListAtAKnownVersionAsksForNoPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, informer := newTestInformer(t,
			errNoWatchList,
			fakeList{version: "5", objects: []object.Object{pod("a", "1")}},
			watching(failing(errExpired)),
			errNoWatchList,
			fakeList{version: "9", objects: []object.Object{pod("a", "8")}},
			watching())
		informer.informer.reflect.pageSize = 7
		defer start(t, informer)()
		synctest.Wait()
		want(t, "asked", source.log(), "watch list from \"\"\nlist from \"\" limit 7\nwatch from \"5\"\n"+
			"watch list from \"5\"\nlist from \"5\"\nwatch from \"9\"")
	})
}

func TestARelistTakesNoMemoryForWhatDidNotChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := watching(added(pod("a", "1")), added(pod("b", "2")), added(pod("c", "3")), allSent("5"), failing(errExpired))
		// The second state arrives up to its bookmark only when the test says so.
		second := watching(added(pod("a", "1")), added(pod("c", "7")), added(pod("x", "7")), added(pod("y", "7")), deleted(pod("x", "8")))
		_, informer := newTestInformer(t, first, second)
		var told told
		if _, err := informer.AddHandler(told.handler, HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		defer start(t, informer)()
		synctest.Wait()
		told.take()
		before := informer.Snapshot().Get(key("a")).entry
		if n := informer.informer.relist.changed.len; n != 2 {
			t.Errorf("%d objects are held beside the store, want the changed c and the new y", n)
		}
		want(t, "store during the relist", contents(informer), "a@1 b@2 c@3")
		e := allSent("9")
		second.events <- e
		synctest.Wait()
		want(t, "store", contents(informer), "a@1 c@7 y@7")
		if informer.Snapshot().Get(key("a")).entry != before {
			t.Error("an object that did not change was made anew")
		}
		lines := told.take()
		if lines != "Deleted b 2 stale\nUpdated c 3→7\nAdded y 7" && lines != "Deleted b 2 stale\nAdded y 7\nUpdated c 3→7" {
			t.Errorf("told:\n%s", lines)
		}
	})
}

// Objects that come twice in a first list, that change their owner in it, or that go again, are right in each index. A snapshot of the list stays as it is.
func TestAFirstListIsTakenOverWithItsIndexes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(
			added(pod("a", "1", ownedBy("one"))), added(pod("b", "2", ownedBy("one"))), modified(pod("a", "3", ownedBy("two"))),
			added(pod("c", "4", ownedBy("one"))), deleted(pod("c", "5", ownedBy("one"))), added(pod("d", "6")), allSent("9"))
		_, informer := newTestInformer(t, w)
		byVersion := NewIndex(informer, func(i Item[*corev1.Pod]) ([]string, error) { return []string{string(i.Meta().Version)}, nil })
		defer start(t, informer)()
		synctest.Wait()
		first := informer.Snapshot()
		check := func() {
			want(t, "controlled by one", names(first.ControlledBy("ns", "one")), "ns/b")
			want(t, "controlled by two", names(first.ControlledBy("ns", "two")), "ns/a")
			want(t, "orphans", names(first.Orphans("ns")), "ns/d")
			want(t, "the replaced state", names(byVersion.In(first, "1")), "")
			want(t, "the last state", names(byVersion.In(first, "3")), "ns/a")
			if n := first.Len(); n != 3 {
				t.Errorf("%d objects, want 3", n)
			}
		}
		check()
		if n := len(informer.informer.archive.families); n != 3 {
			t.Errorf("%d families are kept, want those of three objects", n)
		}
		w.events <- modified(pod("a", "10", ownedBy("one")))
		w.events <- deleted(pod("d", "11"))
		w.events <- added(pod("e", "12", ownedBy("two")))
		synctest.Wait()
		check()
		want(t, "controlled by one now", names(informer.Snapshot().ControlledBy("ns", "one")), "ns/a ns/b")
		want(t, "controlled by two now", names(informer.Snapshot().ControlledBy("ns", "two")), "ns/e")
	})
}
