// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
)

func TestInformerOfAListerWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod1"}})
		informer := clientgo.NewSharedIndexInformer(source, &corev1.Pod{}, 0, nil)
		var got notes
		add(t, informer, &got)
		stop := run(t, informer)
		if !informer.HasSynced() {
			t.Error("not synced")
		}
		source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod2"}})
		source.Modify(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod1"}, Spec: corev1.PodSpec{NodeName: "n"}})
		source.Delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod2"}})
		synctest.Wait()
		want(t, "the handler got", got.was(), "initial pod1\nadd pod2\nupdate pod1 →n\ndelete pod2 on ")
		o, _, err := informer.GetStore().GetByKey("pod1")
		if err != nil || o.(*corev1.Pod).Spec.NodeName != "n" || o.(*corev1.Pod).Kind != "" {
			t.Errorf("the store has %v %v", o, err)
		}
		stop()
		source.Shutdown()
	})
}

func TestListerWatcherThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		source.ListError = apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("not yours"))
		informer := clientgo.NewSharedIndexInformer(source, &corev1.Pod{}, 0, nil)
		var failure error
		if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failure = err }); err != nil {
			t.Fatal(err)
		}
		stop := run(t, informer)
		if !apierrors.IsForbidden(failure) {
			t.Errorf("the failure is %v", failure)
		}
		stop()
		source.Shutdown()
	})
}

func TestUnstructuredObjectsOfAListerWatcherNeedAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		informer := clientgo.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, nil)
		var failure error
		if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failure = err }); err != nil {
			t.Fatal(err)
		}
		stop := run(t, informer)
		if failure == nil || !strings.Contains(failure.Error(), "no apiVersion and kind") {
			t.Errorf("the failure is %v", failure)
		}
		stop()
		source.Shutdown()
	})
}

// A Pod that cannot be decoded and is mended is new to a handler. As an update from its new state to
// its new state, handlers would take it for a resync.
func TestObjectThatCanBeDecodedAtLastIsAdded(t *testing.T) {
	// One of the error handlers sleeps until a moment after the start of the process, which is
	// decades later than the start of a bubble.
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil                         //nolint:reassign // it is the way to set them
	defer func() { utilruntime.ErrorHandlers = handlers }() //nolint:reassign // as above
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		onNode := func(node any) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"nodeName": node},
			}}
		}
		source.Add(onNode(int64(1)))
		example := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
		informer := clientgo.NewSharedIndexInformer(source, example, 0, nil)
		var got notes
		add(t, informer, &got)
		stop := run(t, informer)
		source.Modify(onNode("n1"))
		source.Modify(onNode("n2"))
		synctest.Wait()
		want(t, "the handler got", got.was(), "add a\nupdate a n1→n2")
		stop()
		source.Shutdown()
	})
}

// A handler that asks the object of a tombstone for its owner, as those of sample-controller do, must find it.
func TestTheDeletionOfAnObjectThatCannotBeDecodedHasItsMetadata(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil                         //nolint:reassign // it is the way to set them
	defer func() { utilruntime.ErrorHandlers = handlers }() //nolint:reassign // as above
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		bad := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"nodeName": int64(1)},
			"metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "u", "ownerReferences": []any{
				map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": true},
			}},
		}}
		source.Add(bad)
		informer := clientgo.NewSharedIndexInformer(source, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, 0, nil)
		var deleted []any
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) { deleted = append(deleted, o) }}); err != nil {
			t.Fatal(err)
		}
		stop := run(t, informer)
		source.Delete(bad)
		synctest.Wait()
		if len(deleted) != 1 {
			t.Fatalf("the handler got %d deletions, want 1", len(deleted))
		}
		tombstone, ok := deleted[0].(cache.DeletedFinalStateUnknown)
		if !ok || tombstone.Key != "shop/a" {
			t.Fatalf("the handler got %#v", deleted[0])
		}
		last, ok := tombstone.Obj.(*corev1.Pod)
		if !ok {
			t.Fatalf("the tombstone has %#v", tombstone.Obj)
		}
		if owner := metav1.GetControllerOf(last); last.Name != "a" || last.UID != "u" || owner == nil || owner.Name != "web" {
			t.Errorf("the tombstone has %#v", tombstone.Obj)
		}
		stop()
		source.Shutdown()
	})
}

func TestObjectsOfAListerWatcherMayHaveTheirKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := fcache.NewFakeControllerSource()
		kind := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		source.Add(&corev1.Pod{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		informer := clientgo.NewSharedIndexInformer(source, &corev1.Pod{}, 0, nil)
		stop := run(t, informer)
		source.Add(&corev1.Pod{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Name: "b"}})
		synctest.Wait()
		want(t, "the store has", names(informer.GetStore().List()), "a b")
		stop()
		source.Shutdown()
	})
}

// The core group has an empty name.
func TestListerWatcherOfUnstructuredObjectsOfTheCoreGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		example := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
		first := example.DeepCopy()
		first.SetName("a")
		source := fcache.NewFakeControllerSource()
		source.Add(first)
		informer := clientgo.NewSharedIndexInformer(source, example, 0, nil)
		stop := run(t, informer)
		second := first.DeepCopy()
		second.SetName("b")
		source.Add(second)
		synctest.Wait()
		want(t, "the store has", names(informer.GetStore().List()), "a b")
		stop()
		source.Shutdown()
	})
}

func TestListerWatcherWithoutAnExampleIsAnErrorAndNoPanic(t *testing.T) {
	for _, example := range []runtime.Object{nil, (*corev1.Pod)(nil)} {
		synctest.Test(t, func(t *testing.T) {
			source := fcache.NewFakeControllerSource()
			informer := clientgo.NewSharedIndexInformer(source, example, 0, nil)
			var failure error
			if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failure = err }); err != nil {
				t.Fatal(err)
			}
			stop := run(t, informer)
			if failure == nil || !strings.Contains(failure.Error(), "no example") {
				t.Errorf("the failure is %v", failure)
			}
			stop()
			source.Shutdown()
		})
	}
}

// A ListerWatcher of a program may have mistakes. The process must survive them.
func TestListerWatcherWithoutObjectsIsAnErrorAndNoPanic(t *testing.T) {
	empty := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
	}
	for name, lw := range map[string]*cache.ListWatch{
		"no list": {ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, nil }},
		"a nil list": {ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return (*corev1.PodList)(nil), nil
		}},
		"a list with a nil object": {ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []runtime.RawExtension{{}}}, nil
		}},
		"no watch": {ListWithContextFunc: empty, WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, nil
		}},
		"an event without an object": {ListWithContextFunc: empty, WatchFuncWithContext: watchOf(watch.Event{Type: watch.Added})},
		"an event with a nil object": {ListWithContextFunc: empty, WatchFuncWithContext: watchOf(watch.Event{Type: watch.Added, Object: (*corev1.Pod)(nil)})},
		"an error without a status":  {ListWithContextFunc: empty, WatchFuncWithContext: watchOf(watch.Event{Type: watch.Error})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				informer := clientgo.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(lw, noWatchLists{}), &corev1.Pod{}, 0, nil)
				var failures []string
				if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failures = append(failures, err.Error()) }); err != nil {
					t.Fatal(err)
				}
				stop := run(t, informer)
				time.Sleep(10 * time.Second) // of the bubble: a watch that breaks at once is tried again before it is a failure
				stop()
				if !slices.ContainsFunc(failures, func(text string) bool { return strings.Contains(text, "ListerWatcher") }) {
					t.Errorf("the failures are %q", failures)
				}
			})
		})
	}
}

// watchOf returns a function that begins watches with one event.
func watchOf(e watch.Event) cache.WatchFuncWithContext {
	return func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		w := watch.NewFakeWithChanSize(1, false)
		w.Action(e.Type, e.Object)
		return w, nil
	}
}
