// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var (
	podKind    = object.Resource{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}
	budgetKind = object.Resource{Group: "policy", Version: "v1", Plural: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Namespaced: true}
)

// world is Pods, PodDisruptionBudgets and what finds the ones by the others.
type world struct {
	pods    cache.SharedInformer[*corev1.Pod]
	budgets *Index[*policyv1.PodDisruptionBudget]
	all     *Labelled[*corev1.Pod]
	orphans *Labelled[*corev1.Pod]

	writesPods    client.Typed[*corev1.Pod]
	writesBudgets client.Typed[*policyv1.PodDisruptionBudget]
}

// newWorld returns a world in which the informers run. prepare fills the servers before.
func newWorld(t testing.TB, prepare func(pods, budgets *fakeapi.Resource)) *world {
	t.Helper()
	server := fakeapi.New()
	pods, budgets := server.Serve(podKind), server.Serve(budgetKind)
	prepare(pods, budgets)
	api, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	factory := cache.NewFactory(api, nil)
	w := &world{
		pods:       cache.Informer[*corev1.Pod](factory),
		writesPods: client.For[*corev1.Pod](api), writesBudgets: client.For[*policyv1.PodDisruptionBudget](api),
	}
	informer := cache.Informer[*policyv1.PodDisruptionBudget](factory)
	w.budgets, w.all, w.orphans = NewIndex(informer, selectorOf), NewLabelled(w.pods), NewOrphans(w.pods)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- factory.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := w.pods.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	if err := informer.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

func selectorOf(b *policyv1.PodDisruptionBudget) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(b.Spec.Selector)
}

// model is the same, found by looking at everything.
type model struct {
	pods    map[object.Key]*corev1.Pod
	budgets map[object.Key]*policyv1.PodDisruptionBudget
}

func (m *model) selecting(namespace string, set map[string]string) []object.Key {
	var keys []object.Key
	for key, b := range m.budgets {
		if s, err := selectorOf(b); err == nil && key.Namespace == namespace && s.Matches(labels.Set(set)) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (m *model) selected(namespace string, s labels.Selector, orphans bool) []object.Key {
	var keys []object.Key
	for key, pod := range m.pods {
		if key.Namespace == namespace && s.Matches(labels.Set(pod.Labels)) && (!orphans || metav1.GetControllerOf(pod) == nil) {
			keys = append(keys, key)
		}
	}
	return keys
}

// chance draws what happens.
type chance struct{ *rand.Rand }

func (c chance) of(texts ...string) string { return texts[c.IntN(len(texts))] }

func (c chance) key() object.Key {
	return object.Key{Namespace: c.of("shop", "other"), Name: c.of("a", "b", "c", "d", "e", "f")}
}

func (c chance) set() map[string]string {
	set := map[string]string{}
	for range c.IntN(4) {
		set[c.of("app", "tier", "example.com/part")] = c.of("", "1", "2")
	}
	return set
}

func (c chance) selector() *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	switch c.IntN(8) {
	case 0:
		return nil // nothing
	case 1:
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: "app", Operator: "Nonsense"})
	}
	s.MatchLabels = c.set()
	for range c.IntN(2) {
		r := metav1.LabelSelectorRequirement{Key: c.of("app", "tier"), Operator: metav1.LabelSelectorOperator(c.of("In", "NotIn", "Exists", "DoesNotExist"))}
		if r.Operator == "In" || r.Operator == "NotIn" {
			r.Values = []string{c.of("1", "2"), c.of("", "3")}
		}
		s.MatchExpressions = append(s.MatchExpressions, r)
	}
	return s
}

// step changes an object, in the server and in the model.
func (w *world) step(t *testing.T, m *model, c chance) {
	key := c.key()
	if c.IntN(2) == 0 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: c.set()}}
		if c.IntN(2) == 0 {
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
		}
		change(t, w.writesPods, m.pods, key, pod, c)
		return
	}
	change(t, w.writesBudgets, m.budgets, key, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: c.selector()},
	}, c)
}

func change[T object.Object](t *testing.T, write client.Typed[T], all map[object.Key]T, key object.Key, next T, c chance) {
	old, there := all[key]
	switch {
	case !there:
		made, err := write.Create(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		all[key] = made
	case c.IntN(3) == 0:
		if err := write.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		delete(all, key)
	default:
		next.SetUID(old.GetUID())
		next.SetResourceVersion(old.GetResourceVersion())
		made, err := write.Update(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		all[key] = made
	}
}

func TestBothDirectionsAgreeWithAModelAfterEachEvent(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := chance{rand.New(rand.NewPCG(seed, 0))}
				w := newWorld(t, func(*fakeapi.Resource, *fakeapi.Resource) {})
				m := &model{pods: map[object.Key]*corev1.Pod{}, budgets: map[object.Key]*policyv1.PodDisruptionBudget{}}
				for range 100 {
					w.step(t, m, c)
					synctest.Wait()
					m.compare(t, w, c)
				}
			})
		})
	}
}

// compare asks both for something.
func (m *model) compare(t *testing.T, w *world, c chance) {
	t.Helper()
	namespace, set := c.of("shop", "other"), c.set()
	same := func(what string, have, want []object.Key) {
		t.Helper()
		if want := sorted(maps.All(asSet(want))); !slices.Equal(have, want) {
			t.Errorf("%s in %s: have %v, want %v", what, namespace, have, want)
		}
	}
	same(fmt.Sprint("selecting ", set), sorted(w.budgets.Selecting(namespace, object.LabelsOf(set))), m.selecting(namespace, set))
	s, err := metav1.LabelSelectorAsSelector(c.selector())
	if err != nil {
		s = labels.Everything()
	}
	snapshot := w.pods.Snapshot()
	same(fmt.Sprint("selected by ", s), sorted(w.all.Selected(snapshot, namespace, s)), m.selected(namespace, s, false))
	same(fmt.Sprint("orphans selected by ", s), sorted(w.orphans.Selected(snapshot, namespace, s)), m.selected(namespace, s, true))
	same("selected by nil", sorted(w.all.Selected(snapshot, namespace, nil)), m.selected(namespace, labels.Everything(), false))
}

func asSet(keys []object.Key) map[object.Key]bool {
	set := map[object.Key]bool{}
	for _, key := range keys {
		set[key] = true
	}
	return set
}

// What a search costs must not depend on the selectors that do not match.
func BenchmarkSelecting(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		for _, habit := range []string{"one label", "a common prefix"} {
			b.Run(fmt.Sprintf("%d selectors/%s", n, habit), func(b *testing.B) {
				w := newWorld(b, func(_, budgets *fakeapi.Resource) {
					for i := range n {
						err := budgets.Add(&policyv1.PodDisruptionBudget{
							ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("svc-", i)},
							Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: habits[habit](i)}},
						})
						if err != nil {
							b.Fatal(err)
						}
					}
				})
				set := habits[habit](0)
				set["pod-template-hash"], set["version"] = "5d4f8c7b9", "v1"
				pod := object.LabelsOf(set)
				b.ReportAllocs()
				for b.Loop() {
					found := 0
					for range w.budgets.Selecting("shop", pod) {
						found++
					}
					if found != 1 {
						b.Fatalf("%d selectors match", found)
					}
				}
			})
		}
	}
}
