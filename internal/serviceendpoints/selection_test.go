// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// store is an informer with a server of its own.
type store[T object.Object] struct {
	cache.SharedInformer[T]
	t      testing.TB
	server *fakeapi.Resource
}

func newStore[T object.Object](t testing.TB, resource object.Resource) store[T] {
	t.Helper()
	server := fakeapi.New().Listen().Serve(resource)
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	factory := cache.NewFactory(c, nil)
	s := store[T]{SharedInformer: cache.Informer[T](factory), t: t, server: server}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := factory.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); server.Close(); running.Wait() })
	return s
}

// put creates or updates an object, and returns once the informer has seen it.
func (s store[T]) put(o T) {
	s.t.Helper()
	if err := s.server.Put(o); err != nil {
		s.t.Fatal(err)
	}
	s.await(s.server.ResourceVersion())
}

func (s store[T]) await(version string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	seen, giveUp := s.Observed(object.Version(version))
	defer giveUp()
	select {
	case <-seen:
	case <-ctx.Done():
		s.t.Fatalf("version %s was not seen", version)
	}
}

func (s store[T]) remove(key object.Key) {
	s.t.Helper()
	s.server.Remove(key)
	gone, giveUp := s.Handle().Gone(key, "")
	defer giveUp()
	<-gone
}

type world struct {
	services  store[*corev1.Service]
	pods      store[*corev1.Pod]
	selection *Selection
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		services: newStore[*corev1.Service](t, object.Resource{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true}),
		pods:     newStore[*corev1.Pod](t, object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}),
	}
	w.selection = NewSelection(w.services.SharedInformer, w.pods.SharedInformer)
	return w
}

func service(name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Selector: selector}}
}

// pod returns a Pod that is ready.
func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// woken returns which Services a change of a Pod wakes.
func (w *world) woken(kind cache.EventKind, old, now cache.Item[*corev1.Pod]) []string {
	woken := []string{}
	w.wakes(cache.Event[*corev1.Pod]{Kind: kind, Old: old, New: now}, func(key object.Key) { woken = append(woken, key.Name) })
	slices.Sort(woken)
	return slices.Compact(woken)
}

// wakes does what a controller does with an event.
func (w *world) wakes(e cache.Event[*corev1.Pod], add func(object.Key)) {
	if !w.selection.Matters(e) {
		return
	}
	for _, pod := range []cache.Item[*corev1.Pod]{e.Old, e.New} {
		if pod.Exists() {
			w.selection.Wakes(pod, add)
		}
	}
}

func TestWhatAPodsChangeWakes(t *testing.T) {
	w := newWorld(t)
	w.services.put(service("web", map[string]string{"app": "web"}))
	w.services.put(service("front", map[string]string{"tier": "front"}))
	w.services.put(service("back", map[string]string{"tier": "back"}))
	w.services.put(service("bare", nil))
	elsewhere := service("elsewhere", map[string]string{"app": "web"})
	elsewhere.Spec.Type = corev1.ServiceTypeExternalName
	w.services.put(elsewhere)

	labels := map[string]string{"app": "web", "tier": "front"}
	for i, c := range []struct {
		name   string
		change func(*corev1.Pod)
		want   []string
	}{
		{"nothing that endpoints show", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, []string{}},
		{"a label that nobody selects", func(p *corev1.Pod) { p.Labels["version"] = "2" }, []string{}},
		{"labels, from one Service to another", func(p *corev1.Pod) { p.Labels["tier"] = "back" }, []string{"back", "front", "web"}}, // web for nothing
		{"labels and readiness", func(p *corev1.Pod) { p.Labels["tier"] = "back"; p.Status.Conditions = nil }, []string{"back", "front", "web"}},
		{"readiness", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, []string{"front", "web"}},
		{"address", func(p *corev1.Pod) { p.Status.PodIPs[0].IP = "10.0.0.2" }, []string{"front", "web"}},
		{"a second address", func(p *corev1.Pod) { p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "fd00::1"}) }, []string{"front", "web"}},
		{"end", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, []string{"front", "web"}},
		{"deletion", func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }, []string{"front", "web"}},
		{"loss of its addresses", func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }, []string{"front", "web"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := pod(fmt.Sprint("pod-", i), maps.Clone(labels))
			w.pods.put(p)
			key := object.KeyOf(p)
			old := w.pods.Snapshot().Get(key)
			c.change(p)
			w.pods.put(p)
			if woken := w.woken(cache.Updated, old, w.pods.Snapshot().Get(key)); !slices.Equal(woken, c.want) {
				t.Errorf("wakes %v, want %v", woken, c.want)
			}
		})
	}
	waiting := pod("waiting", labels)
	waiting.Status = corev1.PodStatus{Phase: corev1.PodPending}
	w.pods.put(waiting)
	none := cache.Item[*corev1.Pod]{}
	for _, c := range []struct {
		name string
		old  cache.Item[*corev1.Pod]
		now  cache.Item[*corev1.Pod]
		kind cache.EventKind
		want []string
	}{
		{"a Pod that waits for an address appears", none, w.pods.Snapshot().Get(object.KeyOf(waiting)), cache.Added, []string{}},
		{"it goes", w.pods.Snapshot().Get(object.KeyOf(waiting)), none, cache.Deleted, []string{}},
		{"a Pod appears", none, w.pods.Snapshot().Get(object.Key{Namespace: "shop", Name: "pod-0"}), cache.Added, []string{"front", "web"}},
		{"it goes, too", w.pods.Snapshot().Get(object.Key{Namespace: "shop", Name: "pod-0"}), none, cache.Deleted, []string{"front", "web"}},
		{"another Pod takes its name", w.pods.Snapshot().Get(object.Key{Namespace: "shop", Name: "pod-0"}),
			w.pods.Snapshot().Get(object.Key{Namespace: "shop", Name: "pod-1"}), cache.Replaced, []string{"front", "web"}},
	} {
		if woken := w.woken(c.kind, c.old, c.now); !slices.Equal(woken, c.want) {
			t.Errorf("%s: wakes %v, want %v", c.name, woken, c.want)
		}
	}
}

func TestAServiceFindsItsPods(t *testing.T) {
	w := newWorld(t)
	for i := range 9 {
		w.pods.put(pod(fmt.Sprint("pod-", i), map[string]string{"app": "shop", "component": fmt.Sprint("c-", i%3)}))
	}
	other := pod("other", map[string]string{"app": "shop", "component": "c-1"})
	other.Namespace = "elsewhere"
	w.pods.put(other)
	names := func(selector map[string]string) []string {
		pods, err := w.selection.Pods(service("web", selector))
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, p := range pods {
			all = append(all, p.Namespace+"/"+p.Name)
		}
		return all
	}
	if have := names(map[string]string{"app": "shop", "component": "c-1"}); !slices.Equal(have, []string{"shop/pod-1", "shop/pod-4", "shop/pod-7"}) {
		t.Errorf("have %v", have)
	}
	if have := names(map[string]string{"app": "shop", "component": "c-9"}); len(have) != 0 {
		t.Errorf("have %v for a selector that matches none", have)
	}
	if have := names(nil); len(have) != 0 {
		t.Errorf("have %v without a selector", have)
	}
	w.pods.remove(object.Key{Namespace: "shop", Name: "pod-4"})
	if have := names(map[string]string{"component": "c-1"}); !slices.Equal(have, []string{"shop/pod-1", "shop/pod-7"}) {
		t.Errorf("have %v after one went", have)
	}
}
