// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A handler of every step that does not return holds up no other. What waits for it is
// bounded, and when it returns it is led to what is true.
func TestAStuckHandlerOfEveryStepHoldsUpNobodyAndLosesNothing(t *testing.T) {
	const limit, objects, changes = 10, 5, 900
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("gone", "1")), allSent("1"))
		_, informer := newTestInformer(t, w)
		var log bytes.Buffer
		informer.informer.log = slog.New(slog.NewTextHandler(&log, nil))
		stuck := make(chan struct{})
		known, caught := map[string]string{}, []string{}
		r := add(t, informer, func(e Event[*corev1.Pod]) {
			<-stuck
			name, before := e.Key().Name, ""
			if e.Old.Exists() && e.Kind != Deleted {
				before = string(e.Old.Meta().Version)
			}
			if e.Kind != Deleted && known[name] != before {
				t.Errorf("%s %s from %q, the handler knows %q", e.Kind, name, before, known[name])
			}
			if delete(known, name); e.Kind != Deleted {
				known[name] = string(e.New.Meta().Version)
			}
		}, HandlerOptions{Name: "stuck", EveryStep: true, Limit: limit, CaughtUp: func() { caught = append(caught, fmt.Sprint(len(known))) }})
		quick := 0
		add(t, informer, func(Event[*corev1.Pod]) { quick++ }, HandlerOptions{EveryStep: true, Limit: limit})
		defer start(t, informer)()
		synctest.Wait()
		for i := range changes {
			w.events <- modified(pod(fmt.Sprint("p", i%objects), fmt.Sprint(i+2)))
			synctest.Wait()
		}
		w.events <- deleted(pod("gone", "2000"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if quick != changes+2 || informer.Snapshot().Version() != "2000" {
			t.Errorf("the other handler was told %d times of %d, the informer is at %s", quick, changes+2, informer.Snapshot().Version())
		}
		s := r.Status()
		if s.Waiting > limit+objects+1 || !s.Merging || s.HeldUp != 0 || s.Busy < time.Minute {
			t.Errorf("%+v", s)
		}
		if text := log.String(); strings.Count(text, "has fallen behind") != 1 || !strings.Contains(text, "handler=stuck") {
			t.Errorf("logged: %s", text)
		}
		close(stuck)
		synctest.Wait()
		if len(known) != objects || known["p4"] != fmt.Sprint(changes+1) {
			t.Errorf("the handler knows %v", known)
		}
		if s := r.Status(); s.Merging || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		if !slices.Equal(caught, []string{fmt.Sprint(objects)}) {
			t.Errorf("CaughtUp was called with so many known each time: %v", caught)
		}
		// From here on every step is delivered again.
		before := r.Status()
		for i := range limit {
			w.events <- modified(pod("p0", fmt.Sprint(3000+i)))
		}
		synctest.Wait()
		if s := r.Status(); s.Handled-before.Handled != limit || s.Merged != before.Merged {
			t.Errorf("%+v, before %+v", s, before)
		}
	})
}

// Objects that come and go while a handler is behind are delivered, and bounded.
func TestObjectsThatComeAndGoBeforeAHandlerThatIsBehindAreTold(t *testing.T) {
	const limit = 10
	synctest.Test(t, func(t *testing.T) {
		w := watching(allSent("1"))
		_, informer := newTestInformer(t, w)
		stuck := make(chan struct{})
		var told told
		caught := 0
		r := add(t, informer, func(e Event[*corev1.Pod]) { <-stuck; told.handler(e) }, HandlerOptions{EveryStep: true, Limit: limit, CaughtUp: func() { caught++ }})
		defer start(t, informer)()
		for i := range limit + 1 { // one is in the handler's hands
			w.events <- added(pod("p", fmt.Sprint(i+2)))
			synctest.Wait()
		}
		for i := range 3 * limit {
			w.events <- added(pod(fmt.Sprint("brief-", i), fmt.Sprint(100+2*i)))
			w.events <- deleted(pod(fmt.Sprint("brief-", i), fmt.Sprint(101+2*i)))
			synctest.Wait()
		}
		w.events <- added(pod("brief-3", "500")) // and is there again
		w.events <- added(pod("brief-29", "501"))
		synctest.Wait()
		if s := r.Status(); s.Waiting != 2*limit+1 {
			t.Errorf("%d wait", s.Waiting)
		}
		close(stuck)
		synctest.Wait()
		lines := strings.Split(told.take(), "\n")
		var want []string
		for i := range limit {
			if i == 3 {
				want = append(want, "Added brief-3 500")
				continue
			}
			want = append(want, fmt.Sprintf("Added brief-%d %d", i, 101+2*i), fmt.Sprintf("Deleted brief-%d %d", i, 101+2*i))
		}
		want = append(want, "Added brief-29 501")
		if have := lines[min(len(lines), limit+1):]; !slices.Equal(have, want) {
			t.Errorf("told:\n%s\nwant:\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
		}
		if caught != 1 {
			t.Errorf("CaughtUp was called %d times", caught)
		}
	})
}

// Whatever comes, and whenever the handler is stuck: each event follows from those before,
// the handler ends with what is true, and no more waits than the limit, twice, and the objects.
func TestAHandlerThatIsBehindNowAndThenIsAlwaysLedToWhatIsTrue(t *testing.T) {
	const limit, names = 8, 12
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			w := watching(allSent("1"))
			_, informer := newTestInformer(t, w)
			gate := make(chan struct{}, 10000)
			known := map[string]string{}
			merged := false
			r := add(t, informer, func(e Event[*corev1.Pod]) {
				<-gate
				name, was := e.Key().Name, ""
				if e.Old.Exists() {
					was = string(e.Old.Meta().UID)
				}
				before, _, _ := strings.Cut(known[name], "@")
				if was != before || e.Kind == Added && was != "" {
					t.Fatalf("seed %d: %s %s of %q, the handler knows %q", seed, e.Kind, name, was, known[name])
				}
				if delete(known, name); e.Kind != Deleted {
					known[name] = string(e.New.Meta().UID) + "@" + string(e.New.Meta().Version)
				}
			}, HandlerOptions{EveryStep: true, Limit: limit, CaughtUp: func() { merged = true }})
			stop := start(t, informer)
			there := map[string]string{}
			for version := 2; version < 400; version++ {
				name, v := fmt.Sprint("p", random.IntN(names)), fmt.Sprint(version)
				switch of := there[name]; {
				case of == "":
					there[name] = name + v
					w.events <- added(pod(name, v, uid(types.UID(there[name]))))
				case random.IntN(3) == 0:
					w.events <- deleted(pod(name, v, uid(types.UID(of))))
					delete(there, name)
				default:
					w.events <- modified(pod(name, v, uid(types.UID(of))))
				}
				synctest.Wait()
				if s := r.Status(); s.Waiting > 2*limit+names {
					t.Fatalf("seed %d: %d wait", seed, s.Waiting)
				}
				if random.IntN(60) == 0 {
					r.Resync()
				}
				for range random.IntN(4) * random.IntN(2) {
					gate <- struct{}{}
				}
			}
			close(gate)
			synctest.Wait()
			truth := map[string]string{}
			for key, item := range informer.All() {
				truth[key.Name] = string(item.Meta().UID) + "@" + string(item.Meta().Version)
			}
			if fmt.Sprint(truth) != fmt.Sprint(known) {
				t.Fatalf("seed %d: the handler knows %v, true is %v", seed, known, truth)
			}
			if s := r.Status(); s.Merged > 0 && !merged {
				t.Fatalf("seed %d: steps were merged, and nobody was told", seed)
			}
			stop()
		})
	}
}
