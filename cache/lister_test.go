// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

func podNames(t *testing.T) func([]*corev1.Pod, error) string {
	return func(pods []*corev1.Pod, err error) string {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		var all []string
		for _, p := range pods {
			all = append(all, p.Namespace+"/"+p.Name)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
}

func TestListersReadByKeyNamespaceLabelsAndIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := func(value string) func(*corev1.Pod) {
			return func(p *corev1.Pod) { p.Labels = map[string]string{"team": value}; p.Spec.NodeName = "n-" + value }
		}
		_, informer := newTestInformer(t, watching(
			added(pod("a", "1", in("x"), team("red"))), added(pod("b", "2", in("x"), team("blue"))), added(pod("a", "3", in("y"), team("red"))), allSent("5")))
		if err := informer.AddIndex("node", func(i Item[*corev1.Pod]) ([]string, error) {
			p, err := i.Object()
			return []string{p.Spec.NodeName}, err
		}); err != nil {
			t.Fatal(err)
		}
		defer start(t, informer)()
		synctest.Wait()
		red := labels.SelectorFromSet(labels.Set{"team": "red"})
		names := podNames(t)
		want(t, "all", names(informer.List(labels.Everything())), "x/a x/b y/a")
		want(t, "red", names(informer.List(red)), "x/a y/a")
		want(t, "x", names(informer.Namespaced("x").List(labels.Everything())), "x/a x/b")
		want(t, "red in x", names(informer.Namespaced("x").List(red)), "x/a")
		want(t, "on a node", names(informer.ByIndex("node", "n-blue")), "x/b")
		want(t, "on no node", names(informer.ByIndex("node", "n-none")), "")
		if _, err := informer.ByIndex("nodes", "n-blue"); err == nil || !strings.Contains(err.Error(), `no index "nodes"; added are: node`) {
			t.Errorf("an index that is not there: %v", err)
		}
		if p, err := informer.Namespaced("y").Get("a"); err != nil || p.Namespace != "y" {
			t.Errorf("have %v, %v", p, err)
		}
		if _, err := informer.Namespaced("y").Get("b"); !apierrors.IsNotFound(err) {
			t.Errorf("what is not there: %v", err)
		}
	})
}

// Select with an index says what it says without, for any selector.
func TestSelectSaysTheSameWithAndWithoutAnIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain, indexed := testStore(), testStore()
		informer := SharedInformer[*corev1.Pod]{&informer{store: indexed}}
		informer.IndexLabels("app", "tier", "app")
		value := rapid.SampledFrom([]string{"", "a", "b"})
		for i := range rapid.IntRange(0, 30).Draw(t, "pods") {
			p := pod(fmt.Sprint("p", i), "1", in(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace")))
			p.Labels = map[string]string{}
			for _, label := range []string{"app", "tier", "zone"} {
				if v := value.Draw(t, label); v != "" {
					p.Labels[label] = v
				}
			}
			set(plain, p)
			set(indexed, p)
		}
		text := rapid.SampledFrom([]string{"", "app=a", "app=a,tier=b", "app in (b)", "app in (a,b)", "app!=a", "zone=a", "zone=a,app=b", "!app", "app"}).Draw(t, "selector")
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		namespace := rapid.SampledFrom([]string{"", "x"}).Draw(t, "in")
		have, wanted := names(snapshot(indexed).Select(namespace, selector)), names(snapshot(plain).Select(namespace, selector))
		if have != wanted {
			t.Fatalf("%q in %q: have %s, want %s", text, namespace, have, wanted)
		}
		scanned := 0
		for _, item := range snapshot(plain).All() {
			if selector.Matches(item.Meta().Labels) && (namespace == "" || item.Key().Namespace == namespace) {
				scanned++
			}
		}
		if n := len(strings.Fields(have)); n != scanned {
			t.Fatalf("%q: %d, a scan finds %d", text, n, scanned)
		}
	})
}

func TestOwnedByFindsEveryOwnerControlledByTheManagingOne(t *testing.T) {
	s := testStore()
	both := func(p *corev1.Pod) {
		ownedBy("u1")(p)
		p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0])
		p.OwnerReferences[1].UID, p.OwnerReferences[1].Controller = "u2", nil
	}
	set(s, pod("a", "1", both))
	want(t, "owned by the second", names(snapshot(s).OwnedBy("u2")), "ns/a")
	want(t, "controlled by the second", names(snapshot(s).ControlledBy("u2")), "")
	want(t, "controlled by the first", names(snapshot(s).ControlledBy("u1")), "ns/a")
	want(t, "orphans", names(snapshot(s).Orphans("ns")), "")
}

func TestNamespacesAreCounted(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1", in("x")), pod("b", "1", in("x")), pod("a", "1", in("y")))
	e := s.begin()
	e.remove([]byte("y"), []byte("a"))
	e.commit("")
	for namespace, n := range snapshot(s).Namespaces() {
		if namespace != "x" || n != 2 {
			t.Errorf("%s has %d", namespace, n)
		}
	}
	if (snapshot(s).Get(object.Key{Namespace: "y", Name: "a"})).Exists() {
		t.Error("a removed object is there")
	}
}
