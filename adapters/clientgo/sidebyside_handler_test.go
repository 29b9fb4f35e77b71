// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/object"
)

const ofRegistration = "cache.ResourceEventHandlerRegistration"

var comparisonsOfHandlers = []comparison{
	{
		Name: "what handlers get, and when they have synced",
		Of:   append(methods(ofInformer, "AddEventHandler"), methods(ofRegistration, "HasSynced", "HasSyncedChecker")...),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"))
			informer := s.informer(t, 0, nil)
			goOn := make(chan struct{})
			early, late := &notes{}, &notes{each: func(any) { <-goOn }}
			r := add(t, informer, early)
			note := func(when string) {
				c := r.HasSyncedChecker()
				seen.Note("%s: synced %t %t, %s", when, r.HasSynced(), cache.IsDone(c), c.Name())
			}
			note("before the start")
			defer run(t, informer)()
			note("started")
			seen.Note("early: %s", early.was())
			s.put(t, pod("b"), pod("b", on("n1")), pod("b", on("n2")), pod("b", on("n2")))
			s.pods.Remove(object.Key{Namespace: "team-a", Name: "b"})
			synctest.Wait()
			seen.Note("early: %s", early.was())
			r = add(t, informer, late)
			synctest.Wait()
			note("in the first call")
			close(goOn)
			synctest.Wait()
			note("after the first call")
			seen.Note("late: %s\nearly: %s", late.was(), early.was())
		},
	},
	{
		Name: "a change in a gap of the watch",
		Of:   methods(ofInformer, "AddEventHandler"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"), pod("b"))
			informer := s.informer(t, 0, nil)
			var got notes
			add(t, informer, &got)
			defer run(t, informer)()
			got.was()
			s.gap(t, func() {
				s.pods.Remove(object.Key{Namespace: "team-a", Name: "a"})
				s.put(t, pod("b", on("n")), pod("c"))
			})
			seen.Note("%s", sorted(strings.Split(got.was(), "\n")))
		},
	},
	{
		Name: "an object that is the same after a gap of the watch",
		Of:   methods(ofInformer, "AddEventHandler", "AddEventHandlerWithResyncPeriod", "AddEventHandlerWithOptions"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"), pod("b"))
			informer := s.informer(t, 0, nil)
			var got notes
			add(t, informer, &got)
			defer run(t, informer)()
			got.was()
			s.gap(t, func() { s.put(t, pod("b", on("n"))) })
			seen.Note("%s", sorted(strings.Split(got.was(), "\n")))
		},
		Differs: &methodtest.Difference{Theirs: "update a → update b →n", Ours: "update b →n"},
	},
	{
		Name: "an object that was deleted and made again in a gap of the watch",
		Of:   methods(ofInformer, "AddEventHandler"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"))
			informer := s.informer(t, 0, nil)
			var got notes
			add(t, informer, &got)
			defer run(t, informer)()
			got.was()
			s.gap(t, func() {
				s.pods.Remove(object.Key{Namespace: "team-a", Name: "a"})
				s.put(t, pod("a", on("n")))
			})
			seen.Note("%s", got.was())
		},
	},
	{
		Name: "resyncs of handlers with periods",
		Of:   methods(ofInformer, "AddEventHandler", "AddEventHandlerWithResyncPeriod", "AddEventHandlerWithOptions"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a", on("n")))
			informer := s.informer(t, 10*time.Minute, nil)
			all := map[string]*notes{"never": {}, "each minute": {}, "as the informer": {}, "with options": {}, "late": {}, "too short": {}}
			hour := time.Hour
			logger := klog.Background()
			_, first := informer.AddEventHandlerWithResyncPeriod(all["never"], 0)
			_, second := informer.AddEventHandlerWithResyncPeriod(all["each minute"], time.Minute)
			_, third := informer.AddEventHandlerWithOptions(all["with options"], cache.HandlerOptions{ResyncPeriod: &hour, Logger: &logger})
			add(t, informer, all["as the informer"])
			defer run(t, informer)()
			_, fourth := informer.AddEventHandlerWithResyncPeriod(all["late"], 2*time.Minute)
			_, fifth := informer.AddEventHandlerWithResyncPeriod(all["too short"], time.Second)
			seen.Note("%v %v %v %v %v", first, second, third, fourth, fifth)
			for _, pause := range []time.Duration{time.Second, time.Minute, time.Minute, 9 * time.Minute, time.Hour} {
				time.Sleep(pause)
				synctest.Wait()
				for _, name := range []string{"never", "each minute", "as the informer", "with options", "late", "too short"} {
					seen.Note("after %s more, %s: %s", pause, name, repeated(all[name].was()))
				}
			}
		},
	},
	{
		Name: "an informer without resyncs",
		Of:   methods(ofInformer, "AddEventHandlerWithResyncPeriod", "AddEventHandlerWithOptions"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"))
			informer := s.informer(t, 0, nil)
			early, late := &notes{}, &notes{}
			minute := time.Minute
			_, first := informer.AddEventHandlerWithResyncPeriod(early, minute)
			defer run(t, informer)()
			_, second := informer.AddEventHandlerWithOptions(late, cache.HandlerOptions{ResyncPeriod: &minute})
			time.Sleep(time.Hour)
			synctest.Wait()
			seen.Note("%v %v\nearly: %s\nlate: %s", first, second, early.was(), late.was())
		},
	},
	{
		Name: "a handler that is removed",
		Of:   methods(ofInformer, "RemoveEventHandler"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			informer, other := s.informer(t, 0, nil), s.informer(t, 0, nil)
			var removed, stays, never notes
			r, foreign := add(t, informer, &removed), add(t, other, &notes{})
			add(t, informer, &stays)
			seen.Note("before it runs: %v", informer.RemoveEventHandler(add(t, informer, &never)))
			stop := run(t, informer)
			s.put(t, pod("a"))
			seen.Note("%v", cache.ShutDownEventHandler(informer, r))
			seen.Note("again: %v", informer.RemoveEventHandler(r))
			seen.Note("another informer's: %v", informer.RemoveEventHandler(foreign))
			seen.Note("no registration: an error %t", informer.RemoveEventHandler(nil) != nil)
			s.put(t, pod("b"))
			seen.Note("removed: %s\nstays: %s\nnever: %s", removed.was(), stays.was(), never.was())
			stop()
			seen.Note("after the end: %v", informer.RemoveEventHandler(r))
		},
	},
	{
		Name: "changes that wait for a handler that is removed",
		Of:   methods(ofInformer, "RemoveEventHandler"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			informer := s.informer(t, 0, nil)
			goOn := make(chan struct{})
			slow := &notes{each: func(any) { <-goOn }}
			r := add(t, informer, slow)
			defer run(t, informer)()
			s.put(t, pod("a"), pod("b"), pod("c"))
			seen.Note("%v", informer.RemoveEventHandler(r))
			close(goOn)
			synctest.Wait()
			seen.Note("%s", slow.was())
		},
	},
	{
		Name: "handlers of an informer that has stopped",
		Of:   methods(ofInformer, "AddEventHandler", "AddEventHandlerWithResyncPeriod", "AddEventHandlerWithOptions", "RemoveEventHandler"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"))
			informer := s.informer(t, 0, nil)
			early := add(t, informer, &notes{})
			run(t, informer)()
			handler := cache.ResourceEventHandlerFuncs{}
			for _, add := range []func() (cache.ResourceEventHandlerRegistration, error){
				func() (cache.ResourceEventHandlerRegistration, error) { return informer.AddEventHandler(handler) },
				func() (cache.ResourceEventHandlerRegistration, error) {
					return informer.AddEventHandlerWithResyncPeriod(handler, time.Minute)
				},
				func() (cache.ResourceEventHandlerRegistration, error) {
					return informer.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
				},
			} {
				r, err := add()
				seen.Note("%v %v", r, err)
			}
			seen.Note("the early one has synced %t; removed %v", early.HasSynced(), informer.RemoveEventHandler(early))
		},
	},
	{
		Name: "a handler of a thousand objects",
		Of:   methods(ofRegistration, "HasSynced"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			for i := range 1000 {
				if err := s.pods.Put(pod(fmt.Sprint("pod-", i))); err != nil {
					t.Fatal(err)
				}
			}
			informer := s.informer(t, 0, nil)
			var count, atSync int
			handle := add(t, informer, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { count++ }})
			defer run(t, informer)()
			cache.WaitFor(t.Context(), "", handle.HasSyncedChecker())
			atSync = count
			seen.Note("it has got %d", atSync)
		},
	},
}

// gap makes changes while no watch runs. The informer then has to list.
func (s *side) gap(t *testing.T, changes func()) {
	t.Helper()
	s.Faults.HoldWatches(true)
	changes()
	s.Compact(s.ResourceVersion())
	s.CutConnections()
	s.Faults.HoldWatches(false)
	time.Sleep(2 * time.Minute)
	synctest.Wait()
}

// repeated shortens calls that are all the same.
func repeated(calls string) string {
	lines := strings.Split(calls, "\n")
	for _, line := range lines {
		if line != lines[0] {
			return strings.Join(lines, ", ")
		}
	}
	return fmt.Sprintf("%d times %q", len(lines), lines[0])
}
