// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestAHandlerThatAsksForItHoldsItsInformerUpAtItsLimitAndVisiblySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watch := watching(added(pod("a", "1")), allSent("1"))
		_, informer := newTestInformer(t, watch)
		var log bytes.Buffer
		informer.informer.log = slog.New(slog.NewTextHandler(&log, nil))
		blocked, steps := make(chan struct{}), 0
		r, err := informer.AddHandler(func(Event[*corev1.Pod]) {
			if steps++; steps == 1 {
				<-blocked
			}
		}, HandlerOptions{Name: "recorder", EveryStep: true, HoldUp: true, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer start(t, informer)()
		synctest.Wait() // the handler has its first event in hand
		for i := range 100 {
			watch.events <- modified(pod("a", fmt.Sprint(i+2)))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		s := r.Status()
		if s.Waiting != 10 || s.HeldUp != time.Minute {
			t.Errorf("%d waiting, held up for %s; want the limit of 10 and the minute", s.Waiting, s.HeldUp)
		}
		if got := informer.Snapshot().Version(); got != "11" {
			t.Errorf("the informer has read on to version %s", got)
		}
		if text := log.String(); strings.Count(text, "a handler holds up its informer") != 1 || !strings.Contains(text, "handler=recorder") {
			t.Errorf("logged: %s", text)
		}
		close(blocked)
		synctest.Wait()
		if steps != 101 || informer.Snapshot().Version() != "101" {
			t.Errorf("%d steps, version %s; want all of them", steps, informer.Snapshot().Version())
		}
		if s := r.Status(); s.HeldUp != time.Minute || s.Waiting != 0 {
			t.Errorf("held up %s, %d waiting", s.HeldUp, s.Waiting)
		}
	})
}

func TestRemovingAHandlerThatHoldsItsInformerUpLetsItGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := []fakeEvent{allSent("1")}
		for i := range 50 {
			events = append(events, added(pod(fmt.Sprint("p", i), fmt.Sprint(i+2))))
		}
		_, informer := newTestInformer(t, watching(events...))
		blocked := make(chan struct{})
		r, err := informer.AddHandler(func(Event[*corev1.Pod]) { <-blocked }, HandlerOptions{EveryStep: true, HoldUp: true, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		defer start(t, informer)()
		synctest.Wait()
		if n := informer.Snapshot().Len(); n == 50 {
			t.Error("the informer was not held up")
		}
		r.Remove()
		synctest.Wait()
		if n := informer.Snapshot().Len(); n != 50 {
			t.Errorf("%d objects after the handler was removed", n)
		}
		close(blocked)
	})
}

func TestStoppingEndsTheWaitForAHandlerThatHoldsItsInformerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := []fakeEvent{allSent("1")}
		for i := range 50 {
			events = append(events, added(pod(fmt.Sprint("p", i), fmt.Sprint(i+2))))
		}
		_, informer := newTestInformer(t, watching(events...))
		var log bytes.Buffer
		informer.informer.log = slog.New(slog.NewTextHandler(&log, nil))
		blocked := make(chan struct{})
		if _, err := informer.AddHandler(func(Event[*corev1.Pod]) { <-blocked }, HandlerOptions{Name: "stuck", EveryStep: true, HoldUp: true, Limit: 5}); err != nil {
			t.Fatal(err)
		}
		stop := start(t, informer)
		synctest.Wait()
		time.AfterFunc(time.Minute, func() { close(blocked) })
		began := time.Now()
		stop() // waits for the call that runs, and says so
		if time.Since(began) != time.Minute {
			t.Errorf("stopped after %s, the call ended after a minute", time.Since(began))
		}
		synctest.Wait()
		if text := log.String(); !strings.Contains(text, "stopping waits for a handler") || !strings.Contains(text, "handler=stuck") {
			t.Errorf("logged: %s", text)
		}
	})
}
