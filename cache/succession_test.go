// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestAHandleReadsWhatTheSuccessorHas(t *testing.T) {
	old, now := informerOf(testStore()), informerOf(testStore())
	set(now.informer.store, pod("a", "1", func(p *corev1.Pod) { p.Annotations = map[string]string{"note": "x"} }))
	old.informer.next.Store(now.informer)
	notes, err := old.Handle().Annotations(key("a"))
	if err != nil || notes["note"] != "x" {
		t.Errorf("annotations %v, %v", notes, err)
	}
	if meta, ok := old.Handle().Meta(key("a")); !ok || meta.Name != "a" {
		t.Errorf("metadata %v, %v", meta, ok)
	}
}

// The successor of an informer may hand on its own users at the same time. It holds its lock for writers then, and waits for that of the
// factory.
func TestASuccessorThatHandsOnItsUsersHoldsNothingUp(t *testing.T) {
	_, from := newTestInformer(t)
	_, to := newTestInformer(t)
	a, b := from.informer, to.informer
	a.key, b.key = selection{alone: 1}, selection{alone: 2}
	f := &Factory{informers: map[selection]*informer{a.key: a, b.key: b}}
	b.writing.Lock()
	handed := make(chan bool)
	go func() { handed <- f.tryToHand(a, b, false) }()
	select {
	case done := <-handed:
		if done {
			t.Error("the users were handed on to an informer that another goroutine writes")
		}
	case <-time.After(30 * time.Second):
		t.Error("the lock of the factory is held until the successor has been written")
	}
	b.writing.Unlock()
	if !f.tryToHand(a, b, false) || a.next.Load() != b {
		t.Error("the users were not handed on afterwards")
	}
}
