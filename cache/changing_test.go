// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

// changedPod is a Pod of realPod at a version, with a host of its own.
func changedPod(n, version int) *corev1.Pod {
	p := realPod(n)
	p.ResourceVersion, p.Status.HostIP = fmt.Sprint(version), fmt.Sprint("10.0.0.", version)
	return p
}

// An object that has changed is packed when it has been at rest, and not before. No handler is notified of it,
// and a reader that holds the state as it was reads it as before.
func TestAChangedObjectIsPackedWhenItIsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(changedPod(0, 2)), allSent("5"))
		_, pods := newTestInformer(t, w)
		byHost := NewIndex(pods, func(i Item[*corev1.Pod]) ([]string, error) {
			o, err := i.Object()
			if err != nil {
				return nil, err
			}
			return []string{o.Status.HostIP}, nil
		})
		events := 0
		add(t, pods, func(Event[*corev1.Pod]) { events++ }, HandlerOptions{})
		defer start(t, pods)()
		synctest.Wait()
		current := func() *entry { return pods.Snapshot().Get(object.KeyOf(realPod(0))).entry }
		if packing := current().packing; packing == unpacked {
			t.Error("an object of a list is kept as it came")
		}
		version := 10
		var before *entry
		for range 6 { // twice in each period
			version++
			w.events <- modified(changedPod(0, version))
			time.Sleep(restPeriod / 2)
			synctest.Wait()
			if before = current(); before.packing != unpacked {
				t.Fatalf("a state that changes all the time is packed, at version %s", before.at())
			}
		}
		if entries, bytes, used := keptAsTheyCame(pods); entries != 1 || bytes != int64(len(before.body())) || used != bytes {
			t.Errorf("%d entries of %d bytes, %d used of the room, want one of %d", entries, bytes, used, len(before.body()))
		}
		time.Sleep(2 * restPeriod)
		synctest.Wait()
		after := current()
		if after == before || after.packing == unpacked || len(after.body()) >= len(before.body()) {
			t.Errorf("packing %d, %d bytes of %d, after two periods of rest", after.packing, len(after.body()), len(before.body()))
		}
		reads(t, before, changedPod(0, version))
		reads(t, after, changedPod(0, version))
		found := 0
		for _, item := range byHost.Find(fmt.Sprint("10.0.0.", version)) {
			if found++; item.entry != after {
				t.Error("the index has another entry")
			}
		}
		if found != 1 || events != 7 {
			t.Errorf("%d in the index, %d events, want 1 and 7", found, events)
		}
		if entries, bytes, used := keptAsTheyCame(pods); entries != 0 || bytes != 0 || used != 0 {
			t.Errorf("%d entries of %d bytes, %d used of the room, want none", entries, bytes, used)
		}
		if a := pods.informer.archive; a.stored != len(after.body()) || a.raw != after.rawSize() {
			t.Errorf("%d bytes stored and %d raw, want %d and %d", a.stored, a.raw, len(after.body()), after.rawSize())
		}
	})
}

// keptAsTheyCame returns how many entries of an informer are kept as they came, their size, and that of all in
// its room.
func keptAsTheyCame(pods SharedInformer[*corev1.Pod]) (entries int, bytes, used int64) {
	pods.informer.writing.Lock()
	defer pods.informer.writing.Unlock()
	c := &pods.informer.archive.changing
	return len(c.entries), c.bytes, c.room.used.Load()
}

// What finds no room is packed at once. An object that has room keeps it when it changes.
func TestNoMoreThanTheRoomIsKeptAsItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(allSent("5"))
		_, pods := newTestInformer(t, w)
		size := int64(changedEntrySize(t))
		room := newRoom(3*size + size/2)
		pods.informer.archive.changing.room = room
		stop := start(t, pods)
		defer stop()
		version := 10
		for range 2 {
			for n := range 10 {
				version++
				w.events <- modified(changedPod(n, version))
			}
			synctest.Wait()
			kept := 0
			for n := range 10 {
				if e := pods.Snapshot().Get(object.KeyOf(realPod(n))).entry; e.packing == unpacked {
					kept++
				}
			}
			if _, bytes, used := keptAsTheyCame(pods); kept != 3 || used > room.limit || used != bytes {
				t.Errorf("%d are kept as they came, %d of %d bytes", kept, used, room.limit)
			}
		}
		stop()
		if used := room.used.Load(); used != 0 {
			t.Errorf("an informer that has stopped has %d bytes of the room", used)
		}
	})
}

// changedEntrySize is about how many bytes the body of a changed Pod has.
func changedEntrySize(t *testing.T) int {
	a := newArchive(podContent())
	return mustEntry(t, a, changedPod(0, 11)).rawSize()
}

// A handler that is behind holds old states. They are packed then.
func TestNewStatesArePackedAtOnceWhileAHandlerIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(allSent("5"))
		_, pods := newTestInformer(t, w)
		goOn := make(chan struct{})
		add(t, pods, func(Event[*corev1.Pod]) { <-goOn }, HandlerOptions{EveryStep: true})
		defer start(t, pods)()
		version := 10
		for range behindFrom + 2*batchMost {
			version++
			w.events <- modified(changedPod(0, version))
			if version%500 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if e := pods.Snapshot().Get(object.KeyOf(realPod(0))).entry; e.packing == unpacked {
			t.Error("the newest state is kept as it came")
		}
		close(goOn)
		synctest.Wait()
		for range 2 { // the informer sees with the first that nothing waits any more
			version++
			w.events <- modified(changedPod(0, version))
			synctest.Wait()
		}
		if e := pods.Snapshot().Get(object.KeyOf(realPod(0))).entry; e.packing != unpacked {
			t.Error("the newest state is packed")
		}
	})
}

// Changes that have arrived together are published with one edit, each with an event of its own. None is kept
// back while the informer waits for the server.
func TestChangesThatArriveTogetherAreOneEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := []fakeEvent{allSent("5"), added(pod("first", "9"))}
		for n := range 10 {
			events = append(events, added(pod(fmt.Sprint("p", n), fmt.Sprint(n+10))))
		}
		events = append(events, modified(pod("p3", "20")), deleted(pod("p4", "21")), added(pod("p5", "22", uid("another"))))
		_, pods := newTestInformer(t, watching(events...))
		var lines told
		add(t, pods, lines.handler, HandlerOptions{EveryStep: true})
		defer start(t, pods)()
		synctest.Wait()
		// Two for the list, which is staged and adopted, one for the changes up to the second one of p3, and one for the others.
		if n := pods.informer.store.edits; n != 4 {
			t.Errorf("%d edits, want 4", n)
		}
		want(t, "events", lines.take(), `Added first 9
Added p0 10
Added p1 11
Added p2 12
Added p3 13
Added p4 14
Added p5 15
Added p6 16
Added p7 17
Added p8 18
Added p9 19
Updated p3 13→20
Deleted p4 21
Replaced p5 15→22`)
		want(t, "store", contents(pods), "first@9 p0@10 p1@11 p2@12 p3@20 p5@22 p6@16 p7@17 p8@18 p9@19")
		if s := pods.Snapshot(); s.Version() != "22" || s.Complete() != "21" {
			t.Errorf("version %s, complete up to %s", s.Version(), s.Complete())
		}
	})
}

// The state in which an object was deleted is delivered as it came, and nothing of it stays. Where a handler is behind it may wait for long,
// and is packed.
func TestTheLastStateOfAnObjectIsPackedOnlyIfItHasToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(changedPod(0, 2)), added(changedPod(1, 3)), allSent("5"))
		_, pods := newTestInformer(t, w)
		var last []*entry
		add(t, pods, func(e Event[*corev1.Pod]) {
			if e.Kind == Deleted {
				last = append(last, e.Old.entry)
			}
		}, HandlerOptions{})
		defer start(t, pods)()
		synctest.Wait()
		for n, behind := range []bool{false, true} {
			pods.informer.writing.Lock()
			pods.informer.archive.changing.behind = behind
			pods.informer.writing.Unlock()
			gone := changedPod(n, 10+n)
			gone.Labels = map[string]string{"gone": "at last"} // a family of its own
			w.events <- deleted(gone)
			synctest.Wait()
			if len(last) != n+1 {
				t.Fatalf("%d deletions delivered, want %d", len(last), n+1)
			}
			if packed := last[n].packing != plain; packed != behind {
				t.Errorf("packing %d where a handler is behind: %t", last[n].packing, behind)
			}
			reads(t, last[n], gone)
		}
		a := pods.informer.archive
		if a.raw != 0 || a.stored != 0 || len(a.families) != 0 || len(a.siblings) != 0 {
			t.Errorf("%d bytes raw, %d stored, %d families and %d siblings are left", a.raw, a.stored, len(a.families), len(a.siblings))
		}
	})
}
