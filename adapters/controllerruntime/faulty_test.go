// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/object"
)

// A list without the object would tell a reconciler that the object is gone.
func TestAListWithAnObjectThatCannotBeDecodedIsAnError(t *testing.T) {
	inWorld(t, crcache.Options{Scheme: listableGizmos()}, func(t *testing.T, w *world) {
		w.putGizmo(t, "b")
		w.putGizmo(t, "c")
		w.gizmo(t, "large") // team-a/a
		defer w.start(t)()
		isError := func(options ...crclient.ListOption) {
			t.Helper()
			err := w.cache.List(soon(t), &gizmoItems{}, options...)
			if err == nil || !strings.Contains(err.Error(), "team-a/a") || !strings.Contains(err.Error(), "size") {
				t.Errorf("with %v: %v, want an error that names the object and the field", options, err)
			}
		}
		isError()
		isError(crclient.InNamespace("team-a"))
		isError(crclient.UnsafeDisableDeepCopy)
		isError(crclient.MatchingLabels{"of": "owner"})
		// A list that leaves it out is none.
		var others gizmoItems
		if err := w.cache.List(soon(t), &others, crclient.MatchingLabelsSelector{Selector: selector(t, "!of")}); err != nil || len(others.Items) != 2 {
			t.Errorf("the others: %v, %d", err, len(others.Items))
		}
		if err := w.cache.List(soon(t), &others, crclient.InNamespace("team-b")); err != nil || len(others.Items) != 0 {
			t.Errorf("another namespace: %v, %d", err, len(others.Items))
		}
		for name, empty := range gizmoViews() {
			err := w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "team-a", Name: "a"}, empty())
			if fits := name != "typed"; fits != (err == nil) || !fits && !strings.Contains(err.Error(), "team-a/a") {
				t.Errorf("reading it in the view %s: %v", name, err)
			}
		}
		w.gizmo(t, int64(3))
		var all gizmoItems
		if err := w.cache.List(soon(t), &all); err != nil || len(all.Items) != 3 {
			t.Errorf("after it was mended: %v, %d objects", err, len(all.Items))
		}
	})
}

func TestAPanicOfAHandlerLeavesTheProcessRunning(t *testing.T) {
	for _, sample := range views() {
		inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
			logged.keep(t)
			w.pod(t, "team-a", "a")
			var got, others events
			panics := func(o any) {
				if strings.HasPrefix(nameIn(o), "a") {
					panic("a handler of " + nameIn(o))
				}
			}
			informer := w.informer(t, sample)
			registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
				AddFunc:    func(o any) { got.OnAdd(o, false); panics(o) },
				UpdateFunc: func(before, after any) { got.OnUpdate(before, after); panics(after) },
				DeleteFunc: func(o any) { got.OnDelete(o); panics(o) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := informer.AddEventHandler(&others); err != nil {
				t.Fatal(err)
			}
			defer w.start(t)()
			if !registration.HasSynced() {
				t.Error("the handler that has panicked has not synced")
			}
			w.pod(t, "team-a", "b")
			w.pod(t, "team-a", "a", on("n"))
			w.removePod("team-a", "a")
			w.removePod("team-a", "b")
			const rest = "add b, update a, delete a, delete b"
			if calls := got.was(); calls != "add a, "+rest {
				t.Errorf("the handler got %q", calls)
			}
			if calls := others.was(); calls != "initial a, "+rest {
				t.Errorf("another handler got %q", calls)
			}
			if !logged.has("a handler panicked", "team-a/a", "a handler of a", "TestAPanicOfAHandlerLeavesTheProcessRunning") {
				t.Errorf("the log does not have the panic with its object and its stack:\n%s", logged)
			}
		})
	}
}

func TestAPanicOfATransformLeavesTheProcessRunning(t *testing.T) {
	options := crcache.Options{DefaultTransform: func(o any) (any, error) {
		if o.(crclient.Object).GetName() == "a" {
			panic("a transform of a")
		}
		return o, nil
	}}
	for i, sample := range views() {
		inWorld(t, options, func(t *testing.T, w *world) {
			logged.keep(t)
			w.pod(t, "team-a", "a")
			w.pod(t, "team-a", "b")
			var got events
			if _, err := w.informer(t, sample).AddEventHandler(&got); err != nil {
				t.Fatal(err)
			}
			defer w.start(t)()
			w.pod(t, "team-a", "a", on("n"))
			w.pod(t, "team-a", "c")
			w.api.Of(pods).Remove(object.Key{Namespace: "team-a", Name: "a"})
			w.removePod("team-a", "c")
			if calls := got.was(); calls != "initial b, add c, delete c" {
				t.Errorf("the handler got %q", calls)
			}
			list := lists()[i]
			if err := w.cache.List(soon(t), list); err != nil || firstOf(list).GetName() != "b" {
				t.Errorf("the list has %v, %v", list, err)
			}
			if !logged.has("team-a/a", "the transform panicked: a transform of a") {
				t.Errorf("the log does not have the panic with its object:\n%s", logged)
			}
		})
	}
}

// An index function that panics for a later state leaves that state out, and no state before it is found.
func TestAPanicOfAnIndexFunctionLeavesTheProcessRunning(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		logged.keep(t)
		web := labelled("app", "web")
		w.pod(t, "team-a", "a", on("n1"), web)
		w.pod(t, "team-a", "b", on("n1"), web)
		byNode := func(o crclient.Object) []string {
			if o.(*corev1.Pod).Spec.NodeName == "bad" {
				panic("an index of " + o.GetName())
			}
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}
		if err := w.cache.IndexField(t.Context(), &corev1.Pod{}, "node", byNode); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		found := func(node, want string) {
			t.Helper()
			if got := w.podsOf(t, crclient.MatchingFields{"node": node}); got != want {
				t.Errorf("on %s there are %q, want %q", node, got, want)
			}
		}
		found("n1", "team-a/a - shared=false\nteam-a/b - shared=false")
		w.pod(t, "team-a", "a", on("bad"), web)
		found("n1", "team-a/b - shared=false")
		found("bad", "")
		if !logged.has("team-a/a", "an index of a") {
			t.Errorf("the log does not have the panic with its object:\n%s", logged)
		}
		w.pod(t, "team-a", "a", on("n2"), web)
		found("n2", "team-a/a - shared=false")
	})
}
