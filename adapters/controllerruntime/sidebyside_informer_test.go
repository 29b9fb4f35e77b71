// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
)

const (
	ofInformer = "cache.Informer"
	ofShared   = "toolscache.SharedIndexInformer"
	ofIndexer  = "toolscache.Indexer"
)

// ofBoth are methods of cache.Informer, which SharedIndexInformer has as well.
func ofBoth(names ...string) (all []string) {
	for _, name := range names {
		all = append(all, ofInformer+"."+name, ofShared+"."+name)
	}
	return all
}

func byNode(o any) ([]string, error) { return []string{o.(*corev1.Pod).Spec.NodeName}, nil }

func byApps(o any) ([]string, error) {
	app := o.(*corev1.Pod).Labels["app"]
	if app == "" {
		return nil, nil
	}
	return []string{app, "any", app}, nil
}

var comparisonsOfInformers = []comparison{
	{
		Name: "handlers in each view",
		Of:   ofBoth("AddEventHandler", "AddEventHandlerWithResyncPeriod", "AddEventHandlerWithOptions", "RemoveEventHandler", "HasSynced", "HasSyncedChecker", "IsStopped"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.pod(t, "team-a", "a")
			period := time.Hour
			type one struct {
				early, late, never, hourly events
				removed                    cache.ResourceEventHandlerRegistration
			}
			all := make([]one, len(views()))
			for i, sample := range views() {
				informer, h := w.informer(t, sample), &all[i]
				registration, err := informer.AddEventHandler(&h.early)
				_, never := informer.AddEventHandlerWithResyncPeriod(&h.never, 0)
				_, hourly := informer.AddEventHandlerWithOptions(&h.hourly, cache.HandlerOptions{ResyncPeriod: &period})
				seen.Note("%T: %v %v %v, synced %t %t", sample, err, never, hourly, registration.HasSynced(), informer.HasSynced())
				h.removed = registration
			}
			stop := w.start(t)
			w.pod(t, "team-a", "a", labelled("app", "web"))
			w.pod(t, "team-a", "b")
			w.removePod("team-a", "a")
			for i, sample := range views() {
				informer, h := w.informer(t, sample), &all[i]
				seen.Note("%T: %s, synced %t %t %t, stopped %t", sample, h.early.was(), h.removed.HasSynced(), informer.HasSynced(),
					cache.IsDone(informer.HasSyncedChecker()), informer.IsStopped())
				seen.Note("%s | %s", h.never.was(), h.hourly.was())
				_, err := informer.AddEventHandler(&h.late)
				seen.Note("%v %v", err, informer.RemoveEventHandler(h.removed))
				seen.Note("again: %v, no registration: %t", informer.RemoveEventHandler(h.removed), informer.RemoveEventHandler(nil) != nil)
			}
			w.pod(t, "team-a", "c")
			for i := range all {
				seen.Note("removed %q, late %s", all[i].early.was(), all[i].late.was())
				all[i].hourly.was()
				all[i].never.was()
			}
			time.Sleep(time.Hour + time.Minute)
			synctest.Wait()
			for i := range all {
				seen.Note("after an hour: %d %d", len(all[i].hourly.calls), len(all[i].never.calls))
			}
			informer := w.informer(t, &corev1.Pod{})
			stop()
			_, err := informer.AddEventHandler(&events{})
			seen.Note("after the end: stopped %t, an error %t", informer.IsStopped(), err != nil)
		},
	},
	{
		Name: "changes in a gap of the watch",
		Of:   ofBoth("AddEventHandler"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.pod(t, "team-a", "a")
			w.pod(t, "team-a", "b")
			var got events
			if _, err := w.informer(t, &corev1.Pod{}).AddEventHandler(&got); err != nil {
				t.Fatal(err)
			}
			defer w.start(t)()
			got.was()
			w.gap(t, func() {
				w.removePod("team-a", "a")
				w.pod(t, "team-a", "b", on("n"))
				w.pod(t, "team-a", "c")
			})
			seen.Note("%s", sortedWords(got.was()))
		},
	},
	{
		Name: "an object that is the same after a gap of the watch, and one that was made again",
		Of:   ofBoth("AddEventHandler", "AddEventHandlerWithResyncPeriod", "AddEventHandlerWithOptions"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.pod(t, "team-a", "a")
			w.pod(t, "team-a", "b")
			var got events
			if _, err := w.informer(t, &corev1.Pod{}).AddEventHandler(&got); err != nil {
				t.Fatal(err)
			}
			defer w.start(t)()
			got.was()
			w.gap(t, func() {
				w.removePod("team-a", "b")
				w.pod(t, "team-a", "b")
			})
			seen.Note("%s", sortedWords(got.was()))
		},
		Differs: &methodtest.Difference{
			Theirs: "update a, update b",
			Ours:   "add b, delete tombstone team-a/b",
		},
	},
	{
		Name: "indexes",
		Of:   ofBoth("AddIndexers"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.pod(t, "team-a", "a", on("n1"))
			informer := w.informer(t, &corev1.Pod{})
			seen.Note("%v", informer.AddIndexers(cache.Indexers{"early": byNode}))
			stop := w.start(t)
			seen.Note("%v", informer.AddIndexers(cache.Indexers{"late": byNode}))
			err := informer.AddIndexers(cache.Indexers{"late": byNode})
			seen.Note("a conflict: %t", err != nil && strings.HasPrefix(err.Error(), "indexer conflict"))
			for _, name := range []string{"early", "late"} {
				keys, err := informer.(cache.SharedIndexInformer).GetIndexer().IndexKeys(name, "n1")
				seen.Note("%v %v", keys, err)
			}
			stop()
		},
	},
}

var comparisonsOfSharedInformers = []comparison{
	{
		Name: "the informer as one of client-go",
		Of: append(methods(ofShared, "GetStore", "GetIndexer", "GetController", "LastSyncResourceVersion", "HasSynced", "IsStopped"),
			methods(ofIndexer, "List", "ListKeys", "Get", "GetByKey", "Index", "ByIndex", "IndexKeys", "ListIndexFuncValues", "GetIndexers", "AddIndexers",
				"LastStoreSyncResourceVersion", "Resync")...),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.pod(t, "team-a", "a", on("n1"), labelled("app", "web"))
			w.pod(t, "team-a", "b", on("n2"), labelled("app", "db"))
			w.pod(t, "team-b", "c", on("n1"))
			informer := w.informer(t, &corev1.Pod{}).(cache.SharedIndexInformer)
			x := informer.GetIndexer()
			seen.Note("%v", x.AddIndexers(cache.Indexers{"node": byNode, "apps": byApps}))
			note := func() {
				c := informer.GetController()
				seen.Note("versions %q %q, synced %t %t, resync %v", informer.LastSyncResourceVersion(), c.LastSyncResourceVersion(), informer.HasSynced(), c.HasSynced(), x.Resync())
				methodtest.NoteReads(seen, x, "node", "apps")
				seen.Note("the store has %d", len(informer.GetStore().List()))
			}
			note()
			defer w.start(t)()
			note()
			w.pod(t, "team-a", "a", on("n3"))
			w.removePod("team-b", "c")
			w.pod(t, "team-a", "d", on("n1"), labelled("app", "web"))
			note()
			seen.Note("the version of the store: %s", x.LastStoreSyncResourceVersion())
			first, _, _ := x.GetByKey("team-a/a")
			seen.Note("a conflict: %t\n%s", x.AddIndexers(cache.Indexers{"node": byNode}) != nil, text(t, first))
		},
	},
	{
		Name: "the order of keys, and what there is for an index without objects",
		Of:   methods(ofIndexer, "IndexKeys", "ListIndexFuncValues"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			for _, namespace := range []string{"team-b", "team", "team-a"} {
				for _, name := range []string{"c", "a", "b"} {
					w.pod(t, namespace, name, on("n1"))
				}
			}
			x := w.informer(t, &corev1.Pod{}).(cache.SharedIndexInformer).GetIndexer()
			seen.Note("%v", x.AddIndexers(cache.Indexers{"node": byNode, "apps": byApps}))
			methodtest.NoteIndexes(seen, x, "node", "apps", cache.NamespaceIndex)
			defer w.start(t)()
			methodtest.NoteIndexes(seen, x, "node", "apps", cache.NamespaceIndex)
		},
	},
	{
		Name: "the namespace index of the informer",
		Of:   methods(ofIndexer, "GetIndexers", "ByIndex"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.pod(t, "team-a", "a")
			informer := w.informer(t, &corev1.Pod{}).(cache.SharedIndexInformer)
			defer w.start(t)()
			found, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, "team-a")
			seen.Note("%d %v, %d", len(found), err, len(informer.GetIndexer().GetIndexers()))
		},
	},
	{
		Name: "what the cache decides",
		Of:   methods(ofShared, "SetTransform", "SetWatchErrorHandler", "SetWatchErrorHandlerWithContext"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			informer := w.informer(t, &corev1.Pod{}).(cache.SharedIndexInformer)
			set := func() {
				seen.Note("errors: %t %t %t", informer.SetTransform(func(o any) (any, error) { return o, nil }) != nil,
					informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}) != nil,
					informer.SetWatchErrorHandlerWithContext(cache.DefaultWatchErrorHandler) != nil)
			}
			set()
			defer w.start(t)()
			set()
		},
		Differs: &methodtest.Difference{
			Theirs: "errors: false false false\nerrors: true true true",
			Ours:   "errors: true true true\nerrors: true true true",
		},
	},
	{
		Name: "running an informer that the cache runs",
		Of:   methods(ofShared, "Run", "RunWithContext"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			informer := w.informer(t, &corev1.Pod{}).(cache.SharedIndexInformer)
			defer w.start(t)()
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			informer.RunWithContext(ctx)
			informer.Run(ctx.Done())
			seen.Note("returned after %s", time.Since(begin))
		},
		Differs: &methodtest.Difference{Theirs: "returned after 0s", Ours: "returned after 1m0s"},
	},
	{
		Name: "writes to the store",
		Of:   methods(ofIndexer, "Add", "Update", "Delete", "Replace", "Bookmark"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			informer := w.informer(t, &corev1.Pod{}).(cache.SharedIndexInformer)
			defer w.start(t)()
			x, p := informer.GetIndexer(), &corev1.Pod{}
			p.Namespace, p.Name = "team-a", "a"
			seen.Note("errors: %t %t %t %t", x.Add(p) != nil, x.Update(p) != nil, x.Delete(p) != nil, x.Replace([]any{p}, "7") != nil)
			before := x.LastStoreSyncResourceVersion()
			x.Bookmark("9")
			seen.Note("a bookmark moves it %t", x.LastStoreSyncResourceVersion() != before)
		},
		Differs: &methodtest.Difference{
			Theirs: "errors: false false false false\na bookmark moves it true",
			Ours:   "errors: true true true true\na bookmark moves it false",
		},
	},
}

// sortedWords sorts what commas separate.
func sortedWords(text string) string {
	words := strings.Split(text, ", ")
	slices.Sort(words)
	return strings.Join(words, ", ")
}
