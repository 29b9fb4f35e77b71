// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
)

// startable is what the factories have in common.
type startable interface {
	Start(stop <-chan struct{})
	Shutdown()
}

// start starts a factory until the returned function is called.
func start(f startable) (stop func()) {
	_, stop = startAgain(f)
	return stop
}

// startAgain is as start; again starts what has been made since.
func startAgain(f startable) (again, stop func()) {
	end := make(chan struct{})
	again = func() {
		f.Start(end)
		synctest.Wait()
	}
	again()
	return again, func() {
		close(end)
		f.Shutdown()
		synctest.Wait()
	}
}

func TestGeneratedInformersAndListersWork(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", labeled("app", "web")), pod("b", in("team-b")))
		factory := clientgo.NewSharedInformerFactory(w.clientset(t), 0)
		pods := factory.Core().V1().Pods()
		if pods.Informer().GetStore() != factory.Core().V1().Pods().Informer().GetStore() {
			t.Error("the factory does not share its informers")
		}
		lister := pods.Lister()
		var added notes
		add(t, pods.Informer(), &added)
		again, stop := startAgain(factory)
		defer stop()
		result := factory.WaitForCacheSyncWithContext(t.Context())
		if err := result.AsError(); err != nil || !result.Synced[reflect.TypeFor[*corev1.Pod]()] {
			t.Errorf("have %v", result)
		}
		if synced := factory.WaitForCacheSync(t.Context().Done()); len(synced) != 1 {
			t.Errorf("the synced types are %v", synced)
		}
		web, err := lister.List(labels.SelectorFromSet(labels.Set{"app": "web"}))
		if err != nil || len(web) != 1 || web[0].Name != "a" {
			t.Errorf("the lister has %v %v", web, err)
		}
		b, err := lister.Pods("team-b").Get("b")
		if err != nil || b.Name != "b" || b.Kind != "" {
			t.Errorf("the lister gets %v %v", b, err)
		}
		// ForResource is the same informer.
		generic, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
		if err != nil || generic.Informer().GetStore() != pods.Informer().GetStore() {
			t.Errorf("another informer %v %v", generic, err)
		}
		if _, ours := generic.Informer().(*clientgo.Informer); !ours {
			t.Fatalf("the informer is a %T", generic.Informer())
		}
		if o, err := generic.Lister().ByNamespace("team-b").Get("b"); err != nil || o.(*corev1.Pod) != b {
			t.Errorf("have %v %v", o, err)
		}
		// An informer that is made later is started by another Start.
		nodes := factory.Core().V1().Nodes().Informer()
		again()
		if len(added.was()) == 0 || nodes.HasSynced() != true {
			t.Error("the second start has not started the second informer")
		}
	})
}

// A namespace and selectors come to an informer through a function that client-go generates.
func TestNamespaceAndSelectorsOfAFactory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", labeled("app", "web")), pod("b", labeled("app", "db")), pod("c", labeled("app", "web"), in("team-b")))
		if err := w.nodes.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"app": "web"}}}); err != nil {
			t.Fatal(err)
		}
		web := func(o *metav1.ListOptions) { o.LabelSelector = "app=web" }
		factory := clientgo.NewSharedInformerFactoryWithOptions(w.clientset(t), 0, clientgo.WithNamespace("team-a"), clientgo.WithTweakListOptions(web))
		first := factory.Core().V1().Pods().Informer()
		node, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("nodes"))
		if err != nil {
			t.Fatal(err)
		}
		defer start(factory)()
		want(t, "the factory's Pods are", names(first.GetStore().List()), "a")
		// Nodes have no namespace, which a factory of one leaves out.
		want(t, "the factory's Nodes are", names(node.Informer().GetStore().List()), "n")

		// A group of its own namespace and selectors, on a factory that has none.
		whole := clientgo.NewSharedInformerFactory(w.clientset(t), 0)
		second := core.New(whole, "team-b", web).V1().Pods().Informer()
		defer start(whole)()
		want(t, "the group's Pods are", names(second.GetStore().List()), "c")

		// A constructor of the program's own.
		third := clientgo.NewSharedInformerFactory(w.clientset(t), 0)
		own := third.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return coreinformers.NewFilteredPodInformer(c, "", resync, podIndexers, func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=b" })
		})
		defer start(third)()
		want(t, "the constructor's Pods are", names(own.GetStore().List()), "b")
		if found, err := own.GetIndexer().ByIndex("node", ""); err != nil || names(found) != "b" {
			t.Errorf("its index has %s %v", names(found), err)
		}
	})
}

func TestTransformAndPeriodsOfAFactory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", on("n")))
		factory := clientgo.NewSharedInformerFactoryWithOptions(w.clientset(t), time.Hour,
			clientgo.WithTransform(func(o any) (any, error) {
				o.(*corev1.Pod).Spec = corev1.PodSpec{}
				return o, nil
			}),
			clientgo.WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: time.Minute}))
		informer := factory.Core().V1().Pods().Informer()
		var got notes
		add(t, informer, &got)
		defer start(factory)()
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		want(t, "the handler got", got.was(), "initial a\nupdate a →")
	})
}

// An informer that reads from somewhere else is taken as it is.
func TestConstructorWithItsOwnSourceIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		factory := clientgo.NewSharedInformerFactory(w.clientset(t), 0)
		informer := factory.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{*pod("own")}}, nil
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
			}, noWatchLists{}), &corev1.Pod{}, 0, cache.Indexers{})
		})
		defer start(factory)()
		factory.WaitForCacheSync(t.Context().Done())
		want(t, "the store has", names(informer.GetStore().List()), "own")
	})
}

// A constructor that takes long, or asks for another informer, does not hold up the factory.
func TestConstructorMayUseTheFactory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		factory := clientgo.NewSharedInformerFactory(w.clientset(t), 0)
		ask, done := make(chan struct{}), make(chan cache.SharedIndexInformer)
		build := func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			<-ask
			factory.Core().V1().Nodes().Informer()
			return coreinformers.NewPodInformer(c, "", resync, cache.Indexers{})
		}
		for range 2 {
			go func() { done <- factory.InformerFor(&corev1.Pod{}, build) }()
		}
		synctest.Wait()
		stop := start(factory)
		factory.Core().V1().Nodes().Informer()
		close(ask)
		if one, other := <-done, <-done; one != other {
			t.Error("a type has two informers")
		}
		stop()
	})
}

// noWatchLists is a client that lists.
type noWatchLists struct{}

func (noWatchLists) IsWatchListSemanticsUnSupported() bool { return true }

func TestForResourceOfWhatIsNotBuiltIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		factory := clientgo.NewSharedInformerFactory(w.clientset(t), 0)
		if _, err := factory.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}); err == nil {
			t.Error("an unknown resource is no error")
		}
		if _, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("podlists")); err == nil {
			t.Error("a list is a resource")
		}
	})
}

// A fake clientset has client-go's factory, so unit tests of a program stay as they are.
func TestFactoryOfAFakeClientset(t *testing.T) {
	factory := clientgo.NewSharedInformerFactoryWithOptions(fake.NewClientset(pod("a"), pod("b", in("team-b"))), 0, clientgo.WithNamespace("team-a"))
	informer := factory.Core().V1().Pods().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		t.Fatal(err)
	}
	want(t, "the store has", names(informer.GetStore().List()), "a")
	cancel()
	factory.Shutdown()
}

// Every resource for which client-go generates an informer has one here.
func TestFactoryHasTheResourcesOfClientGo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		theirs := informers.NewSharedInformerFactory(w.clientset(t), 0)
		ours := clientgo.NewSharedInformerFactory(w.clientset(t), 0)
		checked := 0
		for kind := range scheme.Scheme.AllKnownTypes() {
			for _, r := range guesses(kind) {
				if _, err := theirs.ForResource(r); err != nil {
					continue
				}
				checked++
				if _, err := ours.ForResource(r); err != nil {
					t.Error(err)
				}
			}
		}
		if checked < 60 {
			t.Errorf("only %d resources were compared", checked)
		}
	})
}

func TestUnstructuredObjectsAndMetadata(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", on("n")), pod("b", labeled("app", "web")))
		r := corev1.SchemeGroupVersion.WithResource("pods")
		dynamic := clientgo.NewDynamicSharedInformerFactory(w.Config(), 0)
		web := clientgo.NewFilteredMetadataSharedInformerFactory(w.Config(), 0, "team-a", func(o *metav1.ListOptions) { o.LabelSelector = "app=web" })
		whole, metadata := dynamic.ForResource(r), web.ForResource(r)
		again, stop := startAgain(dynamic)
		defer stop()
		defer start(web)()
		if !dynamic.WaitForCacheSync(t.Context().Done())[r] || !web.WaitForCacheSync(t.Context().Done())[r] {
			t.Fatal("not synced")
		}
		o, err := whole.Lister().ByNamespace("team-a").Get("a")
		if err != nil {
			t.Fatal(err)
		}
		node, _, err := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "nodeName")
		if err != nil || node != "n" || o.(*unstructured.Unstructured).GetKind() != "Pod" {
			t.Errorf("have %v %v", o, err)
		}
		all, err := metadata.Lister().List(labels.Everything())
		if err != nil || len(all) != 1 || all[0].(*metav1.PartialObjectMetadata).Name != "b" {
			t.Errorf("have %v %v", all, err)
		}
		// A resource that is not served yet.
		later := dynamic.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"})
		again()
		time.Sleep(time.Minute)
		synctest.Wait()
		if later.Informer().HasSynced() {
			t.Error("synced with nothing")
		}
	})
}

// guesses are the names that a kind's resource may have.
func guesses(kind schema.GroupVersionKind) []schema.GroupVersionResource {
	plural, singular := meta.UnsafeGuessKindToResource(kind)
	return []schema.GroupVersionResource{plural, singular}
}

// The first constructor decides what the informer of a type selects, as in client-go.
func TestInformerThatIsWantedWithOtherSelectorsIsTheFirstOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a", labeled("app", "web")), pod("b", labeled("app", "db")))
		selecting := func(app string) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				return coreinformers.NewFilteredPodInformer(c, "", resync, cache.Indexers{}, func(o *metav1.ListOptions) { o.LabelSelector = "app=" + app })
			}
		}
		for name, factory := range map[string]informers.SharedInformerFactory{
			"here":         clientgo.NewSharedInformerFactory(w.clientset(t), 0),
			"in client-go": informers.NewSharedInformerFactory(w.clientset(t), 0),
		} {
			first := factory.InformerFor(&corev1.Pod{}, selecting("web"))
			second := factory.InformerFor(&corev1.Pod{}, selecting("db"))
			stop := start(factory)
			if first != second || names(second.GetStore().List()) != "a" {
				t.Errorf("%s: the second informer is the first one: %t; it has %q", name, first == second, names(second.GetStore().List()))
			}
			stop()
		}
	})
}
