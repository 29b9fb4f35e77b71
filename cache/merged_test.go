// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

// A filter goes by what its handler knows, which merged changes may be far from the
// last state of.
func TestAFilterIsNotMisledByTheLastStateOfWhatIsGone(t *testing.T) {
	team := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"team": value} }
	}
	synctest.Test(t, func(t *testing.T) {
		watch := watching(added(pod("left", "1", team("red"))), added(pod("came", "2", team("blue"))), added(pod("gate", "3", team("red"))), allSent("5"))
		_, informer := newTestInformer(t, watch)
		var told told
		gate := make(chan struct{})
		red := Filtered(func(i Item[*corev1.Pod]) bool { return i.Meta().Labels.Get("team") == "red" }, func(e Event[*corev1.Pod]) {
			if e.Kind == Updated {
				<-gate
			}
			told.handler(e)
		})
		add(t, informer, red, HandlerOptions{})
		defer start(t, informer)()
		synctest.Wait()
		want(t, "at first", told.take(), "Added gate 3 initial\nAdded left 1 initial")
		watch.events <- modified(pod("gate", "6", team("red")))
		synctest.Wait()
		// While the handler is busy: one leaves the filter and goes, another comes into
		// it and goes.
		watch.events <- modified(pod("left", "7", team("blue")))
		watch.events <- deleted(pod("left", "8", team("blue")))
		watch.events <- modified(pod("came", "9", team("red")))
		watch.events <- deleted(pod("came", "10", team("red")))
		synctest.Wait()
		close(gate)
		synctest.Wait()
		want(t, "told", told.take(), "Updated gate 3→6\nDeleted left 1")
	})
}

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
