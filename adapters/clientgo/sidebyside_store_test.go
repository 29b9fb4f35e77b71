// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/object"
)

const ofIndexer = "cache.Indexer"

// byApps has a Pod under each word of a label, some of them twice.
func byApps(o any) ([]string, error) {
	labels := o.(metav1.Object).GetLabels()
	if labels["app"] == "" {
		return nil, nil
	}
	return []string{labels["app"], "any", labels["app"]}, nil
}

var comparisonsOfStores = []comparison{
	{
		Name: "reads of a store",
		Of: methods(ofIndexer, "List", "ListKeys", "Get", "GetByKey", "Index", "ByIndex", "IndexKeys", "ListIndexFuncValues", "GetIndexers", "AddIndexers",
			"LastStoreSyncResourceVersion", "Resync"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a", on("n1"), labeled("app", "web")), pod("b", on("n2"), labeled("app", "db")), pod("c", on("n1"), in("team-b")))
			informer := s.informer(t, 0, podIndexers)
			x := informer.GetIndexer()
			seen.Note("%v", x.AddIndexers(cache.Indexers{"apps": byApps}))
			methodtest.NoteReads(seen, x, "node", "apps", cache.NamespaceIndex)
			defer run(t, informer)()
			seen.Note("version %s, resync %v", x.LastStoreSyncResourceVersion(), x.Resync())
			methodtest.NoteReads(seen, x, "node", "apps", cache.NamespaceIndex)
			s.put(t, pod("a", on("n3")), pod("d", on("n1"), labeled("app", "web")))
			s.pods.Remove(object.Key{Namespace: "team-b", Name: "c"})
			s.put(t, pod("e"))
			seen.Note("version %s, a conflict %t", x.LastStoreSyncResourceVersion(), x.AddIndexers(cache.Indexers{"node": byNode}) != nil)
			methodtest.NoteReads(seen, x, "node", "apps", cache.NamespaceIndex)
		},
	},
	{
		Name: "the order of keys, and what there is for an index without objects",
		Of:   methods(ofIndexer, "IndexKeys", "ListIndexFuncValues"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			for _, namespace := range []string{"team-b", "team", "team-a"} {
				s.put(t, pod("c", on("n1"), in(namespace)), pod("a", on("n1"), in(namespace)), pod("b", on("n1"), in(namespace)))
			}
			informer := s.informer(t, 0, podIndexers)
			x := informer.GetIndexer()
			seen.Note("%v", x.AddIndexers(cache.Indexers{"apps": byApps}))
			methodtest.NoteIndexes(seen, x, "node", "apps", cache.NamespaceIndex)
			defer run(t, informer)()
			methodtest.NoteIndexes(seen, x, "node", "apps", cache.NamespaceIndex)
		},
	},
	{
		Name: "objects that readers share",
		Of:   methods(ofIndexer, "List", "Get", "GetByKey", "ByIndex"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a", on("n"), labeled("app", "web")))
			informer := s.informer(t, 0, podIndexers)
			defer run(t, informer)()
			x := informer.GetIndexer()
			first, _, err := x.GetByKey("team-a/a")
			second, _, _ := x.Get(pod("a"))
			under, _ := x.ByIndex("node", "n")
			seen.Note("the same object: %t %t %t %v", first == second, first == x.List()[0], first == under[0], err)
			seen.Note("%s", text(t, first))
		},
	},
	{
		Name: "writes before the informer runs",
		Of:   methods(ofIndexer, "Add", "Update", "Delete", "Replace", "Bookmark"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			x := s.informer(t, 0, podIndexers).GetIndexer()
			seen.Note("%v %v", x.Add(pod("a")), x.Add(pod("b", on("n1"))))
			seen.Note("%v %v %v", x.Update(pod("a", on("n2"))), x.Delete(pod("b")), x.Add("text") != nil)
			methodtest.NoteReads(seen, x, "node", "apps", cache.NamespaceIndex)
			seen.Note("%v, version %s", x.Replace([]any{pod("c")}, "5"), x.LastStoreSyncResourceVersion())
			x.Bookmark("7")
			seen.Note("%s, version %s", names(x.List()), x.LastStoreSyncResourceVersion())
		},
	},
	{
		Name: "writes while the informer runs",
		Of:   methods(ofIndexer, "Add", "Update", "Delete", "Replace", "Bookmark"),
		Run: func(t *testing.T, s *side, seen *methodtest.Transcript) {
			s.put(t, pod("a"))
			informer := s.informer(t, 0, nil)
			defer run(t, informer)()
			x := informer.GetIndexer()
			for what, write := range []func() error{
				func() error { return x.Add(pod("b")) },
				func() error { return x.Update(pod("c")) },
				func() error { return x.Delete(pod("a")) },
				func() error { return x.Replace([]any{pod("d")}, "7") },
			} {
				seen.Note("%d: an error %t, %s", what, write() != nil, names(x.List()))
			}
			before := x.LastStoreSyncResourceVersion()
			x.Bookmark("9")
			seen.Note("a bookmark moves it %t", x.LastStoreSyncResourceVersion() != before)
		},
		Differs: &methodtest.Difference{
			Theirs: "0: an error false, a b\n1: an error false, a b c\n2: an error false, b c\n3: an error false, d\na bookmark moves it true",
			Ours:   "0: an error true, a\n1: an error true, a\n2: an error true, a\n3: an error true, a\na bookmark moves it false",
		},
	},
}
