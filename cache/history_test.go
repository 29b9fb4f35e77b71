// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
