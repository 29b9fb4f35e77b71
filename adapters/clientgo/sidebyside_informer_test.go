// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

const (
	ofInformer   = "cache.SharedIndexInformer"
	ofController = "cache.Controller"
)

// noteState writes down what an informer says of itself.
func noteState(seen *methodtest.Transcript, when string, informer cache.SharedIndexInformer) {
	c := informer.GetController()
	checker := informer.HasSyncedChecker()
	seen.Note("%s: synced %t %t, checker %q %t, controller %t %q, version %q %q, stopped %t", when, informer.HasSynced(), c.HasSynced(),
		checker.Name(), cache.IsDone(checker), cache.IsDone(c.HasSyncedChecker()), c.HasSyncedChecker().Name(),
		informer.LastSyncResourceVersion(), c.LastSyncResourceVersion(), informer.IsStopped())
}

var comparisonsOfInformers = []comparison{
	{
		Name: "the life of an informer",
		Of: append(methods(ofInformer, "RunWithContext", "HasSynced", "HasSyncedChecker", "LastSyncResourceVersion", "IsStopped", "GetController", "GetStore", "GetIndexer"),
			methods(ofController, "HasSynced", "HasSyncedChecker", "LastSyncResourceVersion")...),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"), pod("b"))
			informer := s.informer(t, 0, nil)
			noteState(seen, "before", informer)
			stop := run(t, informer)
			noteState(seen, "running", informer)
			seen.Note("the store is the indexer: %t", informer.GetStore() == cache.Store(informer.GetIndexer()))
			s.put(t, pod("c"))
			s.pods.Remove(object.Key{Namespace: "team-a", Name: "a"})
			synctest.Wait()
			noteState(seen, "after changes", informer)
			seen.Note("the store has %s", names(informer.GetStore().List()))
			informer.RunWithContext(t.Context()) // returns at once
			stop()
			noteState(seen, "stopped", informer)
			seen.Note("the store has %s", names(informer.GetStore().List()))
			informer.RunWithContext(t.Context()) // returns at once
		},
	},
	{
		Name: "running until a channel is closed",
		Of:   append(methods(ofInformer, "Run"), methods(ofController, "Run", "RunWithContext")...),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			informer := s.informer(t, 0, nil)
			informer.GetController().Run(nil)                    // returns at once, and runs nothing
			informer.GetController().RunWithContext(t.Context()) // as well
			seen.Note("the controller runs %t", informer.HasSynced())
			stop, done := make(chan struct{}), make(chan struct{})
			go func() { defer close(done); informer.Run(stop) }()
			synctest.Wait()
			seen.Note("it has synced: %t", informer.HasSynced())
			close(stop)
			<-done
			seen.Note("it has stopped: %t", informer.IsStopped())
		},
	},
	{
		Name: "an informer that is stopped before its server answers",
		Of:   methods(ofInformer, "HasSynced", "IsStopped"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.Faults.RefuseNext(1000, "list", fakeapi.Forbidden("pods"))
			s.Faults.RefuseNext(1000, "watch", fakeapi.Forbidden("pods"))
			informer := s.informer(t, 0, nil)
			stop := run(t, informer)
			noteState(seen, "refused", informer)
			stop()
			noteState(seen, "stopped", informer)
		},
	},
	{
		Name: "indexes that are added at any time and once",
		Of:   methods(ofInformer, "AddIndexers"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a", on("n1")), pod("b", on("n2")))
			informer := s.informer(t, 0, cache.Indexers{})
			seen.Note("before it runs: %v", informer.AddIndexers(cache.Indexers{"early": byNode}))
			stop := run(t, informer)
			seen.Note("while it runs: %v", informer.AddIndexers(cache.Indexers{"late": byNode}))
			for _, name := range []string{"early", "late"} {
				found, err := informer.GetIndexer().ByIndex(name, "n2")
				seen.Note("the index %s has %s %v", name, names(found), err)
				err = informer.AddIndexers(cache.Indexers{name: byNode})
				seen.Note("again: a conflict %t", err != nil && strings.HasPrefix(err.Error(), "indexer conflict: "))
			}
			stop()
			seen.Note("after it has stopped: %v", informer.AddIndexers(cache.Indexers{"last": byNode}))
		},
	},
	{
		Name: "functions that are set too late",
		Of:   methods(ofInformer, "SetTransform", "SetWatchErrorHandler", "SetWatchErrorHandlerWithContext"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			informer := s.informer(t, 0, nil)
			defer run(t, informer)()
			seen.Note("%v", informer.SetTransform(func(o any) (any, error) { return o, nil }))
			seen.Note("%v", informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}))
			seen.Note("%v", informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}))
		},
	},
	{
		Name: "a transform",
		Of:   methods(ofInformer, "SetTransform"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a", on("n")))
			informer := s.informer(t, 0, podIndexers)
			seen.Note("%v", informer.SetTransform(func(o any) (any, error) {
				if p := o.(*corev1.Pod); !strings.HasSuffix(p.Spec.NodeName, "!") { // client-go may call it again
					p.Spec.NodeName += "!"
				}
				return o, nil
			}))
			var got notes
			add(t, informer, &got)
			defer run(t, informer)()
			s.put(t, pod("a", on("m")), pod("b", on("n")))
			s.pods.Remove(object.Key{Namespace: "team-a", Name: "b"})
			synctest.Wait()
			seen.Note("%s", got.was())
			found, err := informer.GetIndexer().IndexKeys("node", "m!")
			seen.Note("the index has %v %v", found, err)
		},
	},
	{
		Name: "a transform that changes the name",
		Of:   methods(ofInformer, "SetTransform"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"), pod("b"))
			informer := s.informer(t, 0, nil)
			seen.Note("%v", informer.SetTransform(func(o any) (any, error) {
				if p := o.(*corev1.Pod); p.Name == "a" {
					p.Name = "renamed"
				}
				return o, nil
			}))
			defer run(t, informer)()
			seen.Note("%s", sorted(informer.GetStore().ListKeys()))
		},
		Differs: &methodtest.Difference{
			Theirs: "<nil>\nteam-a/b team-a/renamed",
			Ours:   "<nil>\nteam-a/b",
		},
	},
	{
		Name: "a transform that fails for one object",
		Of:   methods(ofInformer, "SetTransform"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"), pod("b"))
			informer := s.informer(t, 0, nil)
			seen.Note("%v", informer.SetTransform(func(o any) (any, error) {
				if o.(*corev1.Pod).Name == "a" {
					return nil, errors.New("cannot use it")
				}
				return o, nil
			}))
			defer run(t, informer)()
			seen.Note("synced %t, %s", informer.HasSynced(), sorted(informer.GetStore().ListKeys()))
		},
		Differs: &methodtest.Difference{
			Theirs: "<nil>\nsynced false,",
			Ours:   "<nil>\nsynced true, team-a/b",
		},
	},
	{
		Name: "failures of lists and watches",
		Of:   methods(ofInformer, "SetWatchErrorHandler", "SetWatchErrorHandlerWithContext"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			for _, set := range []func(cache.SharedIndexInformer, func(error)) error{
				func(i cache.SharedIndexInformer, f func(error)) error {
					return i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { f(err) })
				},
				func(i cache.SharedIndexInformer, f func(error)) error {
					return i.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { f(err) })
				},
			} {
				s.Faults.RefuseNext(2, "watch", fakeapi.Forbidden("pods"))
				s.Faults.RefuseNext(2, "list", fakeapi.Forbidden("pods"))
				informer := s.informer(t, 0, nil)
				var forbidden atomic.Int32 // of the goroutine of the informer
				err := set(informer, func(err error) {
					if strings.Contains(err.Error(), "forbidden") {
						forbidden.Add(1)
					}
				})
				stop := run(t, informer)
				seen.Note("%v, at first: called %t, synced %t", err, forbidden.Load() > 0, informer.HasSynced())
				time.Sleep(time.Minute)
				synctest.Wait()
				seen.Note("later: called %t, synced %t", forbidden.Load() > 1, informer.HasSynced())
				stop()
			}
		},
	},
	{
		Name: "the Reflector of a failure",
		Of:   methods(ofInformer, "SetWatchErrorHandler", "SetWatchErrorHandlerWithContext"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"))
			informer := s.informer(t, 0, nil)
			last := "not called"
			if err := informer.SetWatchErrorHandler(func(r *cache.Reflector, _ error) {
				last = fmt.Sprintf("type %s, at a version: %t", r.TypeDescription(), r.LastSyncResourceVersion() != "")
			}); err != nil {
				t.Fatal(err)
			}
			stop := run(t, informer)
			s.Faults.RefuseNext(2, "watch", fakeapi.Forbidden("pods"))
			s.Faults.RefuseNext(1, "list", fakeapi.Forbidden("pods"))
			s.CutConnections()
			time.Sleep(time.Minute)
			stop()
			seen.Note("%s", last)
		},
		Differs: &methodtest.Difference{Theirs: "type *v1.Pod, at a version: true", Ours: "type *v1.Pod, at a version: false"},
	},
}
