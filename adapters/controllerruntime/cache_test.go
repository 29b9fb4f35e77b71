// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestThreeViewsOfAKindReadFromOneStore(t *testing.T) {
	for name, first := range map[string]crclient.Object{"typed": &corev1.Pod{}, "unstructured": unstructuredOf(podKind)} {
		t.Run(name+" first", func(t *testing.T) {
			inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
				w.pod(t, "team-a", "a", on("node-1"), labelled("app", "web"))
				defer w.start(t)()
				ctx, key := t.Context(), crclient.ObjectKey{Namespace: "team-a", Name: "a"}
				if err := w.cache.Get(ctx, key, first); err != nil {
					t.Fatal(err)
				}
				p, u, m := &corev1.Pod{}, unstructuredOf(podKind), metadataOf(podKind)
				for _, o := range []crclient.Object{p, u, m} {
					if err := w.cache.Get(ctx, key, o); err != nil {
						t.Fatal(err)
					}
					if got := o.GetObjectKind().GroupVersionKind(); got != podKind {
						t.Errorf("%T has the kind %s", o, got)
					}
					if o.GetName() != "a" || o.GetUID() == "" || o.GetLabels()["app"] != "web" {
						t.Errorf("%T is %v", o, o)
					}
				}
				spec, _ := u.Object["spec"].(map[string]any)
				if p.Spec.NodeName != "node-1" || spec["nodeName"] != "node-1" {
					t.Errorf("the Pod is on %q, the unstructured one on %v", p.Spec.NodeName, spec["nodeName"])
				}
				if got := w.requests("watch"); got != 1 {
					t.Errorf("the server got %d watches: %v", got, w.api.Requests())
				}
			})
		})
	}
}

// requests counts the requests of a verb.
func (w *world) requests(verb string) int {
	n := 0
	for _, r := range w.api.Requests() {
		if r.Verb == verb {
			n++
		}
	}
	return n
}

func TestACallerMayChangeWhatItGetsUnlessDeepCopiesAreOff(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a", labelled("app", "web"))
		defer w.start(t)()
		key := crclient.ObjectKey{Namespace: "team-a", Name: "a"}
		for _, o := range []func() crclient.Object{
			func() crclient.Object { return &corev1.Pod{} },
			func() crclient.Object { return unstructuredOf(podKind) },
			func() crclient.Object { return metadataOf(podKind) },
		} {
			mine, fresh := o(), o()
			if err := w.cache.Get(t.Context(), key, mine); err != nil {
				t.Fatal(err)
			}
			labels := mine.GetLabels()
			labels["app"] = "mine"
			mine.SetLabels(labels)
			if err := w.cache.Get(t.Context(), key, fresh); err != nil {
				t.Fatal(err)
			}
			if got := fresh.GetLabels()["app"]; got != "web" {
				t.Errorf("a change of a %T by its reader shows as %q", mine, got)
			}
		}
		a, b := &corev1.Pod{}, &corev1.Pod{}
		for _, p := range []*corev1.Pod{a, b} {
			if err := w.cache.Get(t.Context(), key, p, crclient.UnsafeDisableDeepCopy); err != nil {
				t.Fatal(err)
			}
		}
		a.Labels["app"] = "shared" // what the option allows to see, and forbids to do
		if b.Labels["app"] != "shared" {
			t.Error("with deep copies off, two readers have objects of their own")
		}
	})
}

func TestListsSelectByNamespaceLabelFieldAndLimit(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a", on("node-1"), labelled("app", "web"))
		w.pod(t, "team-a", "b", on("node-2"), labelled("app", "db"))
		w.pod(t, "team-b", "c", on("node-1"), labelled("app", "db"))
		ctx := t.Context()
		for field, values := range map[string]crclient.IndexerFunc{
			"spec.nodeName": func(o crclient.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} },
			"app":           func(o crclient.Object) []string { return []string{o.GetLabels()["app"]} },
		} {
			if err := w.cache.IndexField(ctx, &corev1.Pod{}, field, values); err != nil {
				t.Fatal(err)
			}
		}
		defer w.start(t)()
		for _, test := range []struct {
			options []crclient.ListOption
			want    string
		}{
			{nil, "a b c"},
			{[]crclient.ListOption{crclient.InNamespace("team-a")}, "a b"},
			{[]crclient.ListOption{crclient.MatchingLabels{"app": "db"}}, "b c"},
			{[]crclient.ListOption{crclient.MatchingFields{"spec.nodeName": "node-1"}}, "a c"},
			{[]crclient.ListOption{crclient.MatchingFields{"spec.nodeName": "node-1"}, crclient.InNamespace("team-b")}, "c"},
			{[]crclient.ListOption{crclient.MatchingFields{"spec.nodeName": "node-1", "app": "db"}}, "c"},
			{[]crclient.ListOption{crclient.MatchingFields{"spec.nodeName": "node-3"}}, ""},
			{[]crclient.ListOption{crclient.InNamespace("team-c")}, ""},
		} {
			var list corev1.PodList
			if err := w.cache.List(ctx, &list, test.options...); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range list.Items {
				names = append(names, p.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("%v: got %q, want %q", test.options, got, test.want)
			}
		}
		var list corev1.PodList
		if err := w.cache.List(ctx, &list, crclient.Limit(2)); err != nil || len(list.Items) != 2 {
			t.Errorf("with a limit of 2: %v, %d Pods", err, len(list.Items))
		}
		if err := w.cache.List(ctx, &list, crclient.MatchingFields{"status.phase": "Running"}); err == nil || !strings.Contains(err.Error(), "Index with name field:status.phase does not exist") {
			t.Errorf("a field without an index: %v", err)
		}
		if err := w.cache.List(ctx, &list, crclient.Continue("more")); err == nil {
			t.Error("continue was accepted")
		}
	})
}

func TestNamespacesHaveTheirOwnSettings(t *testing.T) {
	options := crcache.Options{
		DefaultNamespaces: map[string]crcache.Config{
			"team-a": {},
			"team-b": {LabelSelector: selector(t, "app=web")},
		},
		DefaultLabelSelector: selector(t, "app"),
	}
	inWorld(t, options, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a", labelled("app", "db"))
		w.pod(t, "team-a", "b")
		w.pod(t, "team-b", "c", labelled("app", "db"))
		w.pod(t, "team-b", "d", labelled("app", "web"))
		w.pod(t, "team-c", "e", labelled("app", "web"))
		defer w.start(t)()
		var list corev1.PodList
		if err := w.cache.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "a d" {
			t.Errorf("the cache has %s, want a d", got)
		}
		err := w.cache.Get(t.Context(), crclient.ObjectKey{Namespace: "team-c", Name: "e"}, &corev1.Pod{})
		if err == nil || !strings.Contains(err.Error(), "unknown namespace for the cache") {
			t.Errorf("reading a namespace that the cache does not have: %v", err)
		}
	})
}

func TestHandlersGetTheObjectsOfTheirView(t *testing.T) {
	for _, sample := range []crclient.Object{&corev1.Pod{}, unstructuredOf(podKind), metadataOf(podKind)} {
		t.Run(fmt.Sprintf("%T", sample), func(t *testing.T) {
			inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
				w.pod(t, "team-a", "a")
				informer, err := w.cache.GetInformer(t.Context(), sample)
				if err != nil {
					t.Fatal(err)
				}
				var events []string
				note := func(what string, o any) { events = append(events, fmt.Sprintf("%s %T", what, o)) }
				registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
					AddFunc:    func(o any, initial bool) { note(fmt.Sprintf("add(%t)", initial), o) },
					UpdateFunc: func(_, o any) { note("update", o) },
					DeleteFunc: func(o any) { note("delete", o) },
				})
				if err != nil {
					t.Fatal(err)
				}
				if registration.HasSynced() || informer.HasSynced() {
					t.Error("synced before the start")
				}
				stop := w.start(t)
				w.pod(t, "team-a", "a", labelled("app", "web"))
				w.pod(t, "team-a", "b")
				w.api.Of(pods).Remove(object.Key{Namespace: "team-a", Name: "a"})
				synctest.Wait()
				if !registration.HasSynced() || !toolscache.IsDone(registration.HasSyncedChecker()) || !informer.HasSynced() {
					t.Error("not synced after the start")
				}
				stop()
				want := []string{"add(true) %T", "update %T", "add(false) %T", "delete %T"}
				for i := range want {
					want[i] = fmt.Sprintf(want[i], sample)
				}
				if !slices.Equal(events, want) {
					t.Errorf("got  %v\nwant %v", events, want)
				}
			})
		})
	}
}

// Indexes go with the informer that they were added to, though another view keeps the store.
func TestTheIndexesOfARemovedInformerAreCalledNoMore(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		defer w.start(t)()
		ctx := t.Context()
		if _, err := w.cache.GetInformer(ctx, metadataOf(podKind)); err != nil {
			t.Fatal(err)
		}
		calls := make([]int, 5)
		for cycle := range calls {
			values := func(crclient.Object) []string { calls[cycle]++; return []string{"v"} }
			if err := w.cache.IndexField(ctx, &corev1.Pod{}, "f", values); err != nil {
				t.Fatal(err)
			}
			var found corev1.PodList
			if err := w.cache.List(ctx, &found, crclient.MatchingFields{"f": "v"}); err != nil || len(found.Items) != 1 {
				t.Fatalf("cycle %d found %d Pods: %v", cycle, len(found.Items), err)
			}
			if err := w.cache.RemoveInformer(ctx, &corev1.Pod{}); err != nil {
				t.Fatal(err)
			}
		}
		before := slices.Clone(calls)
		w.pod(t, "team-a", "a", on("node-1"))
		if !slices.Equal(calls, before) {
			t.Errorf("a change called the functions of removed informers: %v times, before it %v", calls, before)
		}
	})
}

// An index function may read another kind. RemoveInformer waits for it, and other readers must not wait with it.
func TestAnInformerIsRemovedWhileItsIndexFunctionReadsAnotherKind(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		defer w.start(t)()
		ctx := t.Context()
		pods, err := w.cache.GetInformer(ctx, &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.cache.GetInformer(ctx, &corev1.Node{}); err != nil {
			t.Fatal(err)
		}
		indexing, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 2)
		go func() {
			ended <- w.cache.IndexField(ctx, &corev1.Pod{}, "f", func(crclient.Object) []string {
				close(indexing)
				<-goOn
				var nodes corev1.NodeList
				if err := w.cache.List(ctx, &nodes); err != nil {
					t.Error(err)
				}
				return nil
			})
		}()
		<-indexing
		go func() { ended <- w.cache.RemoveInformer(ctx, &corev1.Pod{}) }()
		for !pods.IsStopped() { // then RemoveInformer waits for the index function
			goruntime.Gosched()
		}
		close(goOn)
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAnInformerThatIsRemovedComesAgain(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		defer w.start(t)()
		ctx := t.Context()
		before, err := w.cache.GetInformer(ctx, &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		if _, err := before.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { calls++ }}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := w.cache.Get(ctx, crclient.ObjectKey{Namespace: "team-a", Name: "a"}, metadataOf(podKind)); err != nil {
			t.Fatal(err)
		}
		if err := w.cache.RemoveInformer(ctx, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		w.pod(t, "team-a", "b")
		if _, err := before.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err == nil {
			t.Error("the informer that was removed takes a handler")
		}
		after, err := w.cache.GetInformer(ctx, &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		if !before.IsStopped() || after.IsStopped() || !after.HasSynced() || calls != 1 {
			t.Errorf("before is stopped: %t, after: %t, synced: %t; the handler had %d objects", before.IsStopped(), after.IsStopped(), after.HasSynced(), calls)
		}
		if err := w.cache.Get(ctx, crclient.ObjectKey{Namespace: "team-a", Name: "b"}, &corev1.Pod{}); err != nil {
			t.Error(err)
		}
	})
}

func TestReadersThatWaitGetAnErrorWhenTheCacheStops(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.api.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Forbidden("pods are forbidden") })
		stop := w.start(t)
		failed := make(chan error, 1)
		go func() {
			failed <- w.cache.Get(context.Background(), crclient.ObjectKey{Namespace: "team-a", Name: "a"}, &corev1.Pod{})
		}()
		synctest.Wait()
		stop()
		if err := <-failed; !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("the reader that waited got %v", err)
		}
		if err := w.cache.Get(context.Background(), crclient.ObjectKey{Name: "n"}, &corev1.Node{}); err == nil {
			t.Error("a reader after the stop got no error")
		}
	})
}

func TestAReadBeforeTheStartIsAnError(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		err := w.cache.Get(t.Context(), crclient.ObjectKey{Namespace: "team-a", Name: "a"}, &corev1.Pod{})
		if _, ok := errors.AsType[*crcache.ErrCacheNotStarted](err); !ok {
			t.Errorf("got %v", err)
		}
	})
}

func TestAReaderMayBeRefusedKindsWithoutInformer(t *testing.T) {
	inWorld(t, crcache.Options{ReaderFailOnMissingInformer: true}, func(t *testing.T, w *world) {
		defer w.start(t)()
		err := w.cache.List(t.Context(), &corev1.PodList{})
		if notCached, ok := errors.AsType[*crcache.ErrResourceNotCached](err); !ok || notCached.GVK != podKind {
			t.Errorf("got %v", err)
		}
	})
}

func TestOptionsThatContradictThemselvesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		by   map[crclient.Object]crcache.ByObject
		want string
	}{
		"two types for a kind":     {map[crclient.Object]crcache.ByObject{&corev1.Pod{}: {}, unstructuredOf(podKind): {}}, "has the kind /v1, Kind=Pod twice"},
		"namespaces of Nodes":      {map[crclient.Object]crcache.ByObject{&corev1.Node{}: {Namespaces: map[string]crcache.Config{"a": {}}}}, "have no namespace"},
		"a type without a scheme":  {map[crclient.Object]crcache.ByObject{&unknown{}: {}}, "no kind is registered for the type"},
		"a kind that is not there": {map[crclient.Object]crcache.ByObject{&corev1.Service{}: {}}, "no matches for kind"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
				_, err := controllerruntime.NewCache(w.api.Config(), crcache.Options{Mapper: w.mapper, ByObject: test.by})
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		})
	}
	if _, err := controllerruntime.NewCache(nil, crcache.Options{}); err == nil {
		t.Error("a cache without a configuration was made")
	}
}

// unknown is a type that no scheme has.
type unknown struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (u *unknown) DeepCopyObject() runtime.Object { return &unknown{TypeMeta: u.TypeMeta} }

func TestATypeThatTheSchemeDoesNotHaveIsNamed(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		defer w.start(t)()
		if _, err := w.cache.GetInformer(t.Context(), &unknown{}); !runtime.IsNotRegisteredError(err) || !strings.Contains(err.Error(), "unknown") {
			t.Errorf("got %v", err)
		}
		if _, err := w.cache.GetInformerForKind(t.Context(), gizmos.GroupVersionKind()); !runtime.IsNotRegisteredError(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestIndexesThatFailOrAreAddedTwice(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		w.pod(t, "team-a", "b")
		ctx := t.Context()
		panics := func(o crclient.Object) []string {
			if o.GetName() == "a" {
				panic("no a")
			}
			return []string{"x"}
		}
		if err := w.cache.IndexField(ctx, &corev1.Pod{}, "f", panics); err != nil {
			t.Fatal(err)
		}
		if err := w.cache.IndexField(ctx, &corev1.Pod{}, "f", panics); err == nil || !strings.Contains(err.Error(), "indexer conflict") {
			t.Errorf("the second index of a name: %v", err)
		}
		defer w.start(t)()
		var list corev1.PodList
		if err := w.cache.List(ctx, &list, crclient.MatchingFields{"f": "x"}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "b" {
			t.Errorf("got %v, %d Pods", err, len(list.Items))
		}
	})
}

// A reader that finds an index finds all objects in it, also if the index is added at that moment.
func TestAnIndexThatIsBeingAddedIsNotEmpty(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		defer w.start(t)()
		if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		var list corev1.PodList
		read := make(chan error, 1)
		var once sync.Once
		err := w.cache.IndexField(t.Context(), &corev1.Pod{}, "f", func(crclient.Object) []string {
			once.Do(func() {
				go func() { read <- w.cache.List(t.Context(), &list, crclient.MatchingFields{"f": "x"}) }()
				for range 10000 { // the reader gets as far as it can without the index
					goruntime.Gosched()
				}
			})
			return []string{"x"}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil || len(list.Items) != 1 {
			t.Errorf("got %v, %d Pods", err, len(list.Items))
		}
	})
}

func TestATransformGetsTheTypeOfEachView(t *testing.T) {
	options := crcache.Options{DefaultTransform: func(o any) (any, error) {
		o.(crclient.Object).SetAnnotations(map[string]string{"seen-as": fmt.Sprintf("%T", o)})
		return o, nil
	}}
	inWorld(t, options, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		defer w.start(t)()
		for _, o := range []crclient.Object{&corev1.Pod{}, unstructuredOf(podKind), metadataOf(podKind)} {
			if err := w.cache.Get(t.Context(), crclient.ObjectKey{Namespace: "team-a", Name: "a"}, o); err != nil {
				t.Fatal(err)
			}
			if got := o.GetAnnotations()["seen-as"]; got != fmt.Sprintf("%T", o) {
				t.Errorf("the transform of the view %T got a %s", o, got)
			}
		}
	})
}

func TestATransformThatRenamesAnObjectKeepsThatObjectOut(t *testing.T) {
	options := crcache.Options{DefaultTransform: func(o any) (any, error) {
		if p := o.(*corev1.Pod); p.Name == "a" {
			p.Name = "z"
		}
		return o, nil
	}}
	inWorld(t, options, func(t *testing.T, w *world) {
		w.pod(t, "team-a", "a")
		w.pod(t, "team-a", "b")
		defer w.start(t)()
		var list corev1.PodList
		if err := w.cache.List(t.Context(), &list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "b" {
			t.Errorf("got %v, %d Pods", err, len(list.Items))
		}
	})
}

func TestDroppingManagedFieldsNeedsNoTransform(t *testing.T) {
	for name, test := range map[string]struct {
		transform toolscache.TransformFunc
		want      int
	}{"kept": {nil, 1}, "dropped": {crcache.TransformStripManagedFields(), 0}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, crcache.Options{DefaultTransform: test.transform}, func(t *testing.T, w *world) {
				w.pod(t, "team-a", "a", func(p *corev1.Pod) {
					p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply", APIVersion: "v1"}}
				})
				defer w.start(t)()
				key := crclient.ObjectKey{Namespace: "team-a", Name: "a"}
				for _, o := range []crclient.Object{&corev1.Pod{}, unstructuredOf(podKind), metadataOf(podKind)} {
					if err := w.cache.Get(t.Context(), key, o); err != nil {
						t.Fatal(err)
					}
					if got := len(o.GetManagedFields()); got != test.want {
						t.Errorf("%T has %d managed fields, want %d", o, got, test.want)
					}
				}
				if got := w.requests("watch"); got != 1 {
					t.Errorf("the views have %d watches", got)
				}
			})
		})
	}
}

func TestADefinitionThatGoesAndComesIsWatchedAgain(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		gizmo := unstructuredOf(gizmos.GroupVersionKind())
		gizmo.SetNamespace("team-a")
		gizmo.SetName("first")
		if err := w.api.Of(gizmos).Put(gizmo); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		key := crclient.ObjectKey{Namespace: "team-a", Name: "first"}
		if err := w.cache.Get(t.Context(), key, unstructuredOf(gizmos.GroupVersionKind())); err != nil {
			t.Fatal(err)
		}
		w.api.Withdraw(gizmos)
		w.api.CutConnections()
		time.Sleep(time.Minute)
		w.api.Serve(gizmos)
		w.pod(t, "team-a", "later")
		w.api.Compact(w.api.ResourceVersion()) // a real server has no history of the former definition
		gizmo.SetName("second")
		gizmo.SetResourceVersion("")
		gizmo.SetUID("")
		if err := w.api.Of(gizmos).Put(gizmo); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		key.Name = "second"
		if err := w.cache.Get(t.Context(), key, unstructuredOf(gizmos.GroupVersionKind())); err != nil {
			t.Error(err)
		}
		key.Name = "first"
		if err := w.cache.Get(t.Context(), key, unstructuredOf(gizmos.GroupVersionKind())); !apierrors.IsNotFound(err) {
			t.Errorf("an object of the former definition: %v", err)
		}
	})
}

func TestFailuresToWatchReachTheProgramsHandler(t *testing.T) {
	var got error
	options := crcache.Options{DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err) // it must be callable
		got = err
	}}
	inWorld(t, options, func(t *testing.T, w *world) {
		w.api.RefuseNext(1, "watch", fakeapi.Forbidden("pods are forbidden"))
		defer w.start(t)()
		if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		if !apierrors.IsForbidden(got) {
			t.Errorf("the handler got %v", got)
		}
	})
}

func TestAThousandInformers(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		const many = 1000
		kinds := make([]object.Resource, many)
		for i := range kinds {
			kinds[i] = object.Resource{Group: "example.com", Version: "v1", Plural: fmt.Sprintf("kind%ds", i), Kind: fmt.Sprintf("Kind%d", i)}
			w.api.Serve(kinds[i])
			w.serve(kinds[i])
			if _, err := w.cache.GetInformer(t.Context(), unstructuredOf(kinds[i].GroupVersionKind())); err != nil {
				t.Fatal(err)
			}
		}
		stop := w.start(t)
		if !w.cache.WaitForCacheSync(t.Context()) {
			t.Error("the cache has not synced")
		}
		stop()
	})
}
