// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What a chaos campaign found, each as small as it can be told.

func TestRepeatedEventDoesNotBringBackWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pods := newTestInformer(t, watching(added(pod("a", "1")), allSent("5"),
			modified(pod("a", "6")), deleted(pod("a", "7")), modified(pod("a", "6")), bookmark("8")))
		var l told
		if _, err := pods.AddHandler(l.handler, HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		defer start(t, pods)()
		synctest.Wait()
		want(t, "store", contents(pods), "")
	})
}

func TestRepeatedEventDoesNotUndoAReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pods := newTestInformer(t, watching(added(pod("a", "1")), allSent("5"),
			deleted(pod("a", "6")), added(pod("a", "7", uid("second"))), added(pod("a", "1")), bookmark("8")))
		defer start(t, pods)()
		synctest.Wait()
		want(t, "store", contents(pods), "a@7")
	})
}

// The last state of another object says nothing of the one that a handler knew.
func TestDeletionIsToldOfTheObjectThatTheHandlerKnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "1")), allSent("5"))
		_, pods := newTestInformer(t, w)
		gate := make(chan struct{})
		var uids []string
		_, err := pods.AddHandler(func(e Event[*corev1.Pod]) {
			uids = append(uids, e.Kind.String()+" "+string(e.Item().Meta().UID))
			<-gate
		}, HandlerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer start(t, pods)()
		synctest.Wait()
		w.events <- deleted(pod("a", "6"))
		w.events <- added(pod("a", "7", uid("second")))
		w.events <- deleted(pod("a", "8", uid("second")))
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if len(uids) != 2 || uids[1] != "Deleted a" {
			t.Errorf("told %q", uids)
		}
	})
}

// A server that is restored from a backup has lost what came after it: the version
// goes back with the state, and who waits for a version of now is not told that it
// has been seen.
func TestVersionGoesBackWithARestoredServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pods := newTestInformer(t,
			watching(added(pod("a", "90")), allSent("100"), failing(errTooLarge)),
			errTooLarge,
			watching(added(pod("a", "40")), allSent("50")))
		defer start(t, pods)()
		synctest.Wait()
		<-pods.Synced()
		time.Sleep(time.Minute) // the pauses between tries
		if v := pods.Snapshot().Version(); v != "50" {
			t.Errorf("the snapshot says that it is at version %s", v)
		}
		seen, stop := pods.Observed("60")
		defer stop()
		select {
		case <-seen:
			t.Error("version 60 has been seen, of a server at 50")
		default:
		}
	})
}

// A server that forgets what it has just said is not asked without end: each time all
// objects are read.
func TestStateThatExpiresAtOnceIsReadWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answers []any
		for range 200 {
			answers = append(answers, watching(added(pod("a", "1")), allSent("5"), failing(errExpired)))
		}
		s, pods := newTestInformer(t, answers...)
		defer start(t, pods)()
		time.Sleep(time.Minute)
		if asked := strings.Count(s.log(), "watch list"); asked < 2 || asked > 50 {
			t.Errorf("the state was read %d times in a minute", asked)
		}
	})
}

// Two histories may give one version to two states of an object.
func TestSameVersionOfARestoredServerIsAnotherState(t *testing.T) {
	labelled := func(v string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"from": v} }
	}
	synctest.Test(t, func(t *testing.T) {
		_, pods := newTestInformer(t,
			watching(added(pod("a", "45", labelled("before"))), allSent("100"), failing(errTooLarge)),
			errTooLarge,
			watching(added(pod("a", "45", labelled("after"))), allSent("50")))
		defer start(t, pods)()
		time.Sleep(time.Minute) // the pauses between tries
		o, err := pods.Get(key("a"))
		if err != nil || o.Labels["from"] != "after" {
			t.Errorf("the store has %v, %v", o.Labels, err)
		}
	})
}
