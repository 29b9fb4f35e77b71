// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

func TestAWholeStateTellsThoseWhoWaitForAnObjectToGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch := watching(added(pod("a", "1")), added(pod("b", "2")), added(pod("c", "3")), allSent("5"))
		again := watching(added(pod("a", "6", uid("another"))), added(pod("c", "3")), allSent("9"))
		_, informer := newTestInformer(t, watch, again)
		defer start(t, informer)()
		synctest.Wait()
		gone := map[string]<-chan struct{}{}
		for _, name := range []string{"a", "b", "c"} {
			done, giveUp := informer.Handle().Gone(key(name), "")
			defer giveUp()
			gone[name] = done
		}
		watch.events <- failing(errExpired) // nobody handles events
		synctest.Wait()
		for name, want := range map[string]bool{"a": true, "b": true, "c": false} {
			is := false
			select {
			case <-gone[name]:
				is = true
			default:
			}
			if is != want {
				t.Errorf("%s is said to be gone: %v", name, is)
			}
		}
	})
}

func TestAQueueThatHasBeenFullKeepsNoRoomForIt(t *testing.T) {
	const many = 100_000
	changes := make([]*delta, many)
	for n := range changes {
		changes[n] = &delta{key: object.Key{Name: fmt.Sprint(n)}, new: &entry{}}
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	q := newDeltas(0)
	before := heap()
	for _, d := range changes {
		q.push(d)
	}
	for q.pop() != nil {
	}
	if left := heap() - before; left > 10*many {
		t.Errorf("%d bytes are left of a queue that held %d changes", left, many)
	}
	runtime.KeepAlive(changes)
	q.push(changes[0])
	q.push(&delta{key: changes[0].key, new: &entry{}})
	if q.count != 1 || q.merged != 1 {
		t.Errorf("%d wait, %d were merged", q.count, q.merged)
	}
}

func TestATransformThatReturnsNothingIsAnError(t *testing.T) {
	s := serverSource{content: podContent(), transform: func(object.Object) (object.Object, error) { return (*corev1.Pod)(nil), nil }}
	sent, err := frameOf(pod("a", "1"))
	if err != nil {
		t.Fatal(err)
	}
	var f frame
	if err := s.read(&f, sent.encoding, sent.raw); err != nil || f.fault == nil || !strings.Contains(f.fault.Error(), "no object") {
		t.Errorf("err = %v, fault = %v", err, f.fault)
	}
}

func TestAnErrorOfManyLinesTakesOneOfThePage(t *testing.T) {
	s := Status{Trouble: errors.New("<html>\n\t<body>502"), Synced: true}
	want(t, "state", s.state(), "behind: <html> <body>502")
}

func TestWhoChangesAnObjectChangesNoSibling(t *testing.T) {
	a := newArchive(podContent())
	e := mustEntry(t, a, pod("a", "1", ownedBy("rs")))
	o, err := e.decode()
	if err != nil {
		t.Fatal(err)
	}
	*o.GetOwnerReferences()[0].Controller = false
	if owner := object.ControllerOf(mustEntry(t, a, pod("b", "2", ownedBy("rs"))).meta().OwnerReferences); owner == nil {
		t.Error("a sibling has lost its controller")
	}
	if again, err := e.decode(); err != nil || metav1.GetControllerOf(again) == nil {
		t.Errorf("the object reads as it was changed: %v", err)
	}
}
