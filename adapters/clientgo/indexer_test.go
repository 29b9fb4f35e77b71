// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
)

func byNode(o any) ([]string, error) { return []string{o.(*corev1.Pod).Spec.NodeName}, nil }

var podIndexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "node": byNode}

func sorted(s []string) string { return strings.Join(slices.Sorted(slices.Values(s)), " ") }

// The indexes of an informer that runs answer as those of client-go do, which an informer has
// before it runs.
// Options without Indexers are the usual ones.
func TestAnInformerWithoutIndexersTakesOnesBeforeItRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", on("n")))
		informer := w.podInformer(t, clientgo.Options{})
		if err := informer.AddIndexers(cache.Indexers{"node": byNode}); err != nil {
			t.Fatal(err)
		}
		defer run(t, informer)()
		if found, err := informer.GetIndexer().ByIndex("node", "n"); err != nil || names(found) != "a" {
			t.Errorf("the index has %s %v", names(found), err)
		}
	})
}

func TestIndexesBeforeAndAfterTheStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all := []*corev1.Pod{pod("a", on("n1")), pod("b", on("n2")), pod("c", on("n1"), in("team-b"))}
		informer := w.podInformer(t, clientgo.Options{Indexers: podIndexers})
		x := informer.GetIndexer()
		for _, p := range all {
			if err := x.Add(p); err != nil {
				t.Fatal(err)
			}
		}
		check := func(when string) {
			t.Helper()
			list := func(objects []any, err error) string {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
				return names(objects)
			}
			keys := func(keys []string, err error) string {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
				return sorted(keys)
			}
			want(t, when+", List", names(x.List()), "a b c")
			want(t, when+", ListKeys", sorted(x.ListKeys()), "team-a/a team-a/b team-b/c")
			want(t, when+", ByIndex", list(x.ByIndex("node", "n1")), "a c")
			want(t, when+", ByIndex of namespaces", list(x.ByIndex(cache.NamespaceIndex, "team-a")), "a b")
			want(t, when+", ByIndex of nothing", list(x.ByIndex("node", "n9")), "")
			want(t, when+", Index", list(x.Index("node", pod("other", on("n2")))), "b")
			want(t, when+", Index of namespaces", list(x.Index(cache.NamespaceIndex, &metav1.ObjectMeta{Namespace: "team-b"})), "c")
			want(t, when+", IndexKeys", keys(x.IndexKeys("node", "n1")), "team-a/a team-b/c")
			want(t, when+", values", sorted(x.ListIndexFuncValues("node")), "n1 n2")
			want(t, when+", namespaces", sorted(x.ListIndexFuncValues(cache.NamespaceIndex)), "team-a team-b")
			if len(x.GetIndexers()) != len(podIndexers) {
				t.Errorf("%s, the indexers are %v", when, x.GetIndexers())
			}
			if _, err := x.ByIndex("none", ""); err == nil || !strings.Contains(err.Error(), "does not exist") {
				t.Errorf("%s, an index that there is not: %v", when, err)
			}
			if _, err := x.Index("none", pod("a")); err == nil {
				t.Errorf("%s, an index that there is not is no error", when)
			}
			if o, exists, err := x.Get(pod("c", in("team-b"))); err != nil || !exists || o.(*corev1.Pod).Spec.NodeName != "n1" {
				t.Errorf("%s, Get: %v %v %v", when, o, exists, err)
			}
			if o, exists, err := x.GetByKey("team-b/none"); err != nil || exists || o != nil {
				t.Errorf("%s, GetByKey: %v %v %v", when, o, exists, err)
			}
			lister := listers.NewPodLister(x)
			in, err := lister.Pods("team-a").List(labels.Everything())
			if err != nil || len(in) != 2 {
				t.Errorf("%s, the lister has %v %v", when, in, err)
			}
			if p, err := lister.Pods("team-b").Get("c"); err != nil || p.Name != "c" {
				t.Errorf("%s, the lister gets %v %v", when, p, err)
			}
		}
		check("before")
		w.put(t, all...)
		defer run(t, informer)()
		check("after")
		// An object changes its place in the indexes.
		w.put(t, pod("a", on("n3")))
		if found, err := x.ByIndex("node", "n1"); err != nil || names(found) != "c" {
			t.Errorf("after a change, n1 has %s %v", names(found), err)
		}
		if found, err := x.ByIndex("node", "n3"); err != nil || names(found) != "a" {
			t.Errorf("after a change, n3 has %s %v", names(found), err)
		}
	})
}

func TestStoreOfARunningInformerTakesNoWrites(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a"))
		informer := w.podInformer(t, clientgo.Options{})
		x := informer.GetIndexer()
		if err := errors.Join(x.Add(pod("test")), x.Update(pod("test")), x.Replace([]any{pod("other"), pod("test")}, "5"), x.Delete(pod("other")), x.Resync()); err != nil {
			t.Fatal(err)
		}
		want(t, "before it runs, the store has", names(x.List()), "test")
		defer run(t, informer)()
		want(t, "when it runs, the store has", names(x.List()), "a")
		for what, err := range map[string]error{
			"Add": x.Add(pod("b")), "Update": x.Update(pod("a", on("n"))), "Delete": x.Delete(pod("a")), "Replace": x.Replace(nil, "9"),
		} {
			if err == nil {
				t.Errorf("%s is no error", what)
			}
		}
		want(t, "after refused writes, the store has", names(x.List()), "a")
		if got := x.LastStoreSyncResourceVersion(); got != w.ResourceVersion() {
			t.Errorf("the store is at version %s", got)
		}
	})
}

func TestIndexesAreAddedAtAnyTimeAndOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", on("n1")), pod("b", on("n2")))
		informer := w.podInformer(t, clientgo.Options{Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}})
		if err := informer.AddIndexers(cache.Indexers{"early": byNode}); err != nil {
			t.Fatal(err)
		}
		defer run(t, informer)()
		if err := informer.GetIndexer().AddIndexers(cache.Indexers{"late": byNode}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"early", "late"} {
			if found, err := informer.GetIndexer().ByIndex(name, "n2"); err != nil || names(found) != "b" {
				t.Errorf("the index %s has %s %v", name, names(found), err)
			}
			if err := informer.AddIndexers(cache.Indexers{name: byNode}); err == nil || !strings.Contains(err.Error(), "conflict") {
				t.Errorf("adding the index %s again: %v", name, err)
			}
		}
	})
}

// client-go ends the process when an index function fails. Here the object is not in the index.
func TestIndexFunctionThatFailsLeavesItsObjectOut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("bad"), pod("good"), pod("ugly"))
		informer := w.podInformer(t, clientgo.Options{Indexers: cache.Indexers{"x": func(o any) ([]string, error) {
			switch o.(*corev1.Pod).Name {
			case "bad":
				return nil, errors.New("no value")
			case "ugly":
				panic("oh")
			}
			return []string{"v", "w"}, nil
		}}})
		defer run(t, informer)()
		if found, err := informer.GetIndexer().ByIndex("x", "v"); err != nil || names(found) != "good" {
			t.Errorf("the index has %s %v", names(found), err)
		}
		if found, err := informer.GetIndexer().Index("x", pod("good")); err != nil || names(found) != "good" {
			t.Errorf("two values have %s %v", names(found), err)
		}
		want(t, "the store has", names(informer.GetStore().List()), "bad good ugly")
	})
}
