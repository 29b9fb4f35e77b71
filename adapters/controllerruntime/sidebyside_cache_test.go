// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/internal/methodtest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

const ofCache = "cache.Cache"

// noteList writes a list down.
func noteList(t *testing.T, w *world, seen *methodtest.Transcript, list crclient.ObjectList, options ...crclient.ListOption) {
	t.Helper()
	err := w.cache.List(t.Context(), list, options...)
	var items []string
	switch l := list.(type) {
	case *corev1.PodList:
		for _, p := range l.Items {
			items = append(items, text(t, p))
		}
	case *unstructured.UnstructuredList:
		for _, u := range l.Items {
			items = append(items, text(t, u.Object))
		}
	case *metav1.PartialObjectMetadataList:
		for _, m := range l.Items {
			items = append(items, text(t, m))
		}
	}
	slices.Sort(items)
	seen.Note("%T %v: %v %q\n%s", list, list.GetObjectKind().GroupVersionKind(), err, list.GetContinue(), strings.Join(items, "\n"))
}

// lists are empty lists of Pods in the three views.
func lists() []crclient.ObjectList {
	u, m := new(unstructured.UnstructuredList), new(metav1.PartialObjectMetadataList)
	u.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
	m.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
	return []crclient.ObjectList{new(corev1.PodList), u, m}
}

var comparisonsOfCaches = []comparison{
	{
		Name: "reads",
		Of:   methods(ofCache, "Get", "List", "IndexField"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.pod(t, "team-a", "a", on("n1"), labelled("app", "web"))
			w.pod(t, "team-a", "b", on("n2"), labelled("app", "db"))
			w.pod(t, "team-b", "c", on("n1"), labelled("app", "web"))
			ctx := t.Context()
			byNode := func(o crclient.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
			seen.Note("%v", w.cache.IndexField(ctx, &corev1.Pod{}, "node", byNode))
			err := w.cache.IndexField(ctx, &corev1.Pod{}, "node", byNode)
			seen.Note("again: %t", err != nil && strings.HasPrefix(err.Error(), "indexer conflict"))
			seen.Note("%v %v", w.cache.Get(ctx, crclient.ObjectKey{Namespace: "team-a", Name: "a"}, &corev1.Pod{}), w.cache.List(ctx, &corev1.PodList{}))
			defer w.start(t)()
			for _, key := range []crclient.ObjectKey{{Namespace: "team-a", Name: "a"}, {Namespace: "team-c", Name: "a"}, {Name: "a"}, {}} {
				for _, o := range views() {
					err := w.cache.Get(ctx, key, o)
					seen.Note("Get %s: %v %t\n%s", key, err, apierrors.IsNotFound(err), text(t, o))
				}
			}
			for _, options := range [][]crclient.ListOption{
				nil, {crclient.InNamespace("team-a")}, {crclient.InNamespace("none")}, {crclient.MatchingLabels{"app": "web"}},
				{crclient.InNamespace("team-b"), crclient.MatchingLabels{"app": "web"}}, {crclient.HasLabels{"none"}},
				{crclient.Limit(0)}, {crclient.Limit(5)}, {crclient.UnsafeDisableDeepCopy},
			} {
				for _, list := range lists() {
					noteList(t, w, seen, list, options...)
				}
			}
			for _, options := range [][]crclient.ListOption{
				{crclient.MatchingFields{"node": "n1"}}, {crclient.MatchingFields{"node": "n1"}, crclient.InNamespace("team-b")},
				{crclient.MatchingFields{"node": "n1"}, crclient.MatchingLabels{"app": "db"}}, {crclient.MatchingFields{"node": "none"}},
				{crclient.MatchingFields{"zone": "z"}}, {crclient.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("node", "n1")}},
				{crclient.Continue("from here")},
			} {
				noteList(t, w, seen, &corev1.PodList{}, options...)
			}
			limited := &corev1.PodList{}
			seen.Note("%v %d", w.cache.List(ctx, limited, crclient.Limit(2)), len(limited.Items))
		},
	},
	{
		Name: "cluster-scoped objects",
		Of:   methods(ofCache, "Get", "List"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			if err := w.api.Of(nodes).Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
				t.Fatal(err)
			}
			defer w.start(t)()
			for _, namespace := range []string{"", "ignored"} {
				var node corev1.Node
				err := w.cache.Get(t.Context(), crclient.ObjectKey{Namespace: namespace, Name: "n"}, &node)
				seen.Note("%v %s", err, node.Name)
			}
			var list corev1.NodeList
			err := w.cache.List(t.Context(), &list)
			seen.Note("%v %d", err, len(list.Items))
		},
	},
	{
		Name: "a list of cluster-scoped objects in a namespace",
		Of:   methods(ofCache, "List"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			if err := w.api.Of(nodes).Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}); err != nil {
				t.Fatal(err)
			}
			defer w.start(t)()
			var list corev1.NodeList
			err := w.cache.List(t.Context(), &list, crclient.InNamespace("team-a"))
			seen.Note("%v %d", err, len(list.Items))
		},
		Differs: &methodtest.Difference{Theirs: "<nil> 0", Ours: "<nil> 1"},
	},
	{
		Name: "kinds and types that are not there",
		Of:   methods(ofCache, "Get", "List", "GetInformer", "GetInformerForKind", "RemoveInformer", "IndexField"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			defer w.start(t)()
			ctx := t.Context()
			_, byType := w.cache.GetInformer(ctx, &unknown{})
			_, byKind := w.cache.GetInformerForKind(ctx, gizmos.GroupVersionKind())
			_, unserved := w.cache.GetInformer(ctx, &corev1.Secret{})
			for _, err := range []error{
				byType, byKind, unserved, w.cache.RemoveInformer(ctx, &unknown{}), w.cache.RemoveInformer(ctx, &corev1.Secret{}),
				w.cache.Get(ctx, crclient.ObjectKey{Name: "a"}, &unknown{}), w.cache.List(ctx, &corev1.SecretList{}),
				w.cache.IndexField(ctx, &unknown{}, "f", nil),
			} {
				seen.Note("%v %t", err, runtime.IsNotRegisteredError(err))
			}
		},
	},
	{
		Name: "informers that are made, removed and made again",
		Of:   methods(ofCache, "GetInformer", "GetInformerForKind", "RemoveInformer", "Start", "WaitForCacheSync"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.pod(t, "team-a", "a")
			ctx := t.Context()
			ended, end := context.WithCancel(ctx)
			end()
			seen.Note("before the start: %t", w.cache.WaitForCacheSync(ended))
			before := w.informer(t, &corev1.Pod{})
			stop := w.start(t)
			seen.Note("a second start is an error: %t", w.cache.Start(ctx) != nil)
			seen.Note("started: %t", w.cache.WaitForCacheSync(ctx))
			same, err := w.cache.GetInformer(ctx, &corev1.Pod{})
			byKind, kindErr := w.cache.GetInformerForKind(ctx, podKind)
			seen.Note("the same: %t %t %v %v", same == before, byKind == before, err, kindErr)
			var got events
			if _, err := before.AddEventHandler(&got); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			seen.Note("%v, %s", w.cache.RemoveInformer(ctx, &corev1.Pod{}), got.was())
			synctest.Wait()
			w.pod(t, "team-a", "b")
			seen.Note("%v, stopped %t, %q", w.cache.RemoveInformer(ctx, &corev1.Pod{}), before.IsStopped(), got.was())
			_, handlerErr := before.AddEventHandler(&got)
			seen.Note("errors: %t %t", handlerErr != nil, before.AddIndexers(nil) != nil)
			after, err := w.cache.GetInformer(ctx, &corev1.Pod{})
			if err != nil {
				t.Fatal(err)
			}
			seen.Note("another one: %t, stopped %t, synced %t", after != before, after.IsStopped(), after.HasSynced())
			stop()
			seen.Note("after the end: stopped %t", after.IsStopped())
		},
	},
	{
		Name: "a cache whose server refuses it",
		Of:   methods(ofCache, "GetInformer", "WaitForCacheSync", "Get"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.api.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Forbidden("pods are forbidden") })
			defer w.start(t)()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := w.cache.GetInformer(ctx, &corev1.Pod{})
			getErr := w.cache.Get(ctx, crclient.ObjectKey{Namespace: "team-a", Name: "a"}, &corev1.Pod{})
			seen.Note("a timeout: %t %t, synced: %t", apierrors.IsTimeout(err), apierrors.IsTimeout(getErr), w.cache.WaitForCacheSync(ctx))
			_, err = w.cache.GetInformer(t.Context(), &corev1.Pod{}, crcache.BlockUntilSynced(false))
			seen.Note("without waiting: %v", err)
		},
	},
	{
		Name: "readers that wait when the cache stops",
		Of:   methods(ofCache, "Get", "List", "GetInformer", "GetInformerForKind"),
		Run: func(t *testing.T, w *world, seen *methodtest.Transcript) {
			w.api.Before(func(*fakeapi.Request) *metav1.Status { return fakeapi.Forbidden("pods are forbidden") })
			stop := w.start(t)
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			reads := []func() error{
				func() error {
					return w.cache.Get(ctx, crclient.ObjectKey{Namespace: "team-a", Name: "a"}, &corev1.Pod{})
				},
				func() error { return w.cache.List(ctx, &corev1.PodList{}) },
				func() error { _, err := w.cache.GetInformer(ctx, &corev1.Pod{}); return err },
				func() error { _, err := w.cache.GetInformerForKind(ctx, podKind); return err },
			}
			failed := make([]chan string, len(reads))
			for i, read := range reads {
				failed[i] = make(chan string, 1)
				go func() {
					failed[i] <- fmt.Sprintf("a timeout %t after %s", apierrors.IsTimeout(read()), time.Since(begin))
				}()
			}
			time.Sleep(time.Second)
			stop()
			for _, answer := range failed {
				seen.Note("%s", <-answer)
			}
		},
		Differs: &methodtest.Difference{
			Theirs: strings.Repeat("a timeout true after 1h0m0s\n", 4),
			Ours:   strings.Repeat("a timeout true after 1s\n", 4),
		},
	},
}
