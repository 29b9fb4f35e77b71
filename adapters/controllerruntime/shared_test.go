// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

// cluster-api converts the informers of its cache, and compares the version of the store with those of its writes.
func TestInformersAreThoseOfClientGo(t *testing.T) {
	for name, options := range map[string]crcache.Options{
		"all namespaces": {},
		"two namespaces": {DefaultNamespaces: map[string]crcache.Config{"team-a": {}, "team-b": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, options, func(t *testing.T, w *world) {
				w.pod(t, "team-a", "a", on("node-1"))
				w.pod(t, "team-b", "b", on("node-2"))
				informer := sharedInformer(t, w)
				store, indexer := informer.GetStore(), informer.GetIndexer()
				if informer.LastSyncResourceVersion() != "" || store.LastStoreSyncResourceVersion() != "" || len(store.List()) != 0 {
					t.Error("the store has something before the cache runs")
				}
				byNode := func(o any) ([]string, error) { return []string{o.(*corev1.Pod).Spec.NodeName}, nil }
				if err := informer.AddIndexers(toolscache.Indexers{"node": byNode}); err != nil {
					t.Fatal(err)
				}
				defer w.start(t)()
				checkReads(t, store, indexer)
				before := informer.LastSyncResourceVersion()
				w.pod(t, "team-a", "c", on("node-1"))
				w.pod(t, "team-b", "d", on("node-2"))
				synctest.Wait()
				if after := store.LastStoreSyncResourceVersion(); len(store.ListKeys()) != 4 || after <= before {
					t.Errorf("have %v at version %s, which was %s", store.ListKeys(), after, before)
				}
			})
		})
	}
}

// sharedInformer returns the informer of Pods as client-go's interface.
func sharedInformer(t *testing.T, w *world) toolscache.SharedIndexInformer {
	informer, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}, crcache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		t.Fatalf("%T is no SharedIndexInformer", informer)
	}
	return shared
}

// checkReads reads the Pods team-a/a on node-1 and team-b/b on node-2 in every way.
func checkReads(t *testing.T, store toolscache.Store, indexer toolscache.Indexer) {
	is := func(what string, got []string, want ...string) {
		t.Helper()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: have %v, want %v", what, got, want)
		}
	}
	names := func(objects []any, err error) (names []string) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		for _, o := range objects {
			names = append(names, o.(*corev1.Pod).Name)
		}
		return names
	}
	is("List", names(store.List(), nil), "a", "b")
	is("ListKeys", store.ListKeys(), "team-a/a", "team-b/b")
	is("ByIndex", names(indexer.ByIndex("node", "node-2")), "b")
	is("ListIndexFuncValues", indexer.ListIndexFuncValues("node"), "node-1", "node-2")
	keys, err := indexer.IndexKeys("node", "node-1")
	if err != nil {
		t.Error(err)
	}
	is("IndexKeys", keys, "team-a/a")
	found, exists, err := store.GetByKey("team-a/a")
	if err != nil || !exists {
		t.Fatal(exists, err)
	}
	is("Index", names(indexer.Index("node", found)), "a")
	if same, exists, err := store.Get(found); err != nil || !exists || same.(*corev1.Pod).UID != found.(*corev1.Pod).UID {
		t.Error(same, exists, err)
	}
	for _, key := range []string{"team-a/b", "team-c/a"} {
		if o, exists, err := store.GetByKey(key); o != nil || exists || err != nil {
			t.Errorf("%s: %v, %v, %v", key, o, exists, err)
		}
	}
	if _, err := indexer.ByIndex("zone", "x"); err == nil {
		t.Error("there is no index of zones")
	}
	if len(indexer.GetIndexers()) != 2 || len(indexer.ListIndexFuncValues("zone")) != 0 {
		t.Errorf("the indexes are %v", indexer.GetIndexers())
	}
}

func TestWhatACacheDecidesIsAnErrorOfItsInformers(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		informer := sharedInformer(t, w)
		pod := &corev1.Pod{}
		for what, err := range map[string]error{
			"SetTransform":                       informer.SetTransform(func(o any) (any, error) { return o, nil }),
			"SetWatchErrorHandler":               informer.SetWatchErrorHandler(func(*toolscache.Reflector, error) {}),
			"SetWatchErrorHandlerWithContext":    informer.SetWatchErrorHandlerWithContext(toolscache.DefaultWatchErrorHandler),
			"Add":                                informer.GetStore().Add(pod),
			"Update":                             informer.GetStore().Update(pod),
			"Delete":                             informer.GetStore().Delete(pod),
			"Replace":                            informer.GetStore().Replace([]any{pod}, "1"),
			"AddIndexers of a name that is used": twice(informer.GetIndexer()),
		} {
			if err == nil {
				t.Errorf("%s is no error", what)
			}
		}
		if err := informer.GetStore().Resync(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); informer.GetController().RunWithContext(ctx) }()
		cancel()
		<-done // the cache runs the informer
	})
}

func twice(indexer toolscache.Indexer) error {
	indexers := toolscache.Indexers{"namespace": toolscache.MetaNamespaceIndexFunc}
	_ = indexer.AddIndexers(indexers)
	return indexer.AddIndexers(indexers)
}
