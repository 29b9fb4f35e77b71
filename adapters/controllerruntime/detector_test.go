// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
)

// culprits are functions that get the shared Pod x/web-0 and call do with it, and what the detector names them.
var culprits = map[string]struct {
	run  func(t *testing.T, w *world, do func(crclient.Object))
	name string
}{
	"a reader without deep copies": {getWithoutCopy, "controllerruntime_test.getWithoutCopy "},
	"an index function":            {addAnIndex, `the function of the index "field:f"`},
	"an event handler":             {handle, `the handler "github.com/setpoint-io/setpoint/adapters/controllerruntime_test.handle`},
	"a predicate":                  {decide, `the handler "sigs.k8s.io/controller-runtime/pkg/internal/source.EventHandler[`},
	"a mapping function":           {mapToRequests, `the handler "sigs.k8s.io/controller-runtime/pkg/internal/source.EventHandler[`},
}

func getWithoutCopy(t *testing.T, w *world, do func(crclient.Object)) {
	p := &corev1.Pod{}
	if err := w.cache.Get(soon(t), crclient.ObjectKey{Namespace: "x", Name: "web-0"}, p, crclient.UnsafeDisableDeepCopy); err != nil {
		t.Fatal(err)
	}
	do(p)
}

func addAnIndex(t *testing.T, w *world, do func(crclient.Object)) {
	w.informer(t, &corev1.Pod{})
	synctest.Wait() // the Pod is there
	if err := w.cache.IndexField(t.Context(), &corev1.Pod{}, "f", func(o crclient.Object) []string { do(o); return nil }); err != nil {
		t.Fatal(err)
	}
}

func handle(t *testing.T, w *world, do func(crclient.Object)) {
	if _, err := w.informer(t, &corev1.Pod{}).AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { do(o.(crclient.Object)) },
	}); err != nil {
		t.Fatal(err)
	}
}

func decide(t *testing.T, w *world, do func(crclient.Object)) {
	startSource(t, w, &handler.EnqueueRequestForObject{}, predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { do(e.Object); return true },
	})
}

func mapToRequests(t *testing.T, w *world, do func(crclient.Object)) {
	startSource(t, w, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o crclient.Object) []reconcile.Request { do(o); return nil }))
}

// startSource starts a source of a controller.
func startSource(t *testing.T, w *world, h handler.EventHandler, predicates ...predicate.Predicate) {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	s := source.Kind[crclient.Object](w.cache, &corev1.Pod{}, h, predicates...)
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForSync(soon(t)); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	queue.ShutDown()
}

func TestTheDetectorNamesEachFunctionThatChangesASharedObject(t *testing.T) {
	for who, culprit := range culprits {
		t.Run(who, func(t *testing.T) {
			inWorldWith(t, controllerruntime.NewCacheWith(controllerruntime.DetectMutation(time.Hour)), func(t *testing.T, w *world) {
				w.pod(t, "x", "web-0", annotated("a", "b"))
				defer w.start(t)()
				changes := 0
				culprit.run(t, w, func(o crclient.Object) {
					changes++
					o.GetAnnotations()["mine"] = "yes" // the map is shared
				})
				synctest.Wait()
				lines := controllerruntime.FactoryOf(w.cache).Mutated()
				if len(lines) != 1 || changes != 1 || !strings.Contains(lines[0], "pods x/web-0 at resourceVersion") || !strings.Contains(lines[0], culprit.name) {
					t.Errorf("after %d changes, the detector has %q, want one line with %s", changes, lines, culprit.name)
				}
				if again := controllerruntime.FactoryOf(w.cache).Mutated(); len(again) != 0 {
					t.Errorf("the detector names it again: %q", again)
				}
			})
		})
	}
}

// The writer of the store calls an index function with each later state: it has not got the object.
func TestTheDetectorNamesAnIndexFunctionThatChangesALaterState(t *testing.T) {
	inWorldWith(t, controllerruntime.NewCacheWith(controllerruntime.DetectMutation(time.Hour)), func(t *testing.T, w *world) {
		spoil := func(o crclient.Object) []string {
			o.GetAnnotations()["mine"] = "yes"
			return nil
		}
		if err := w.cache.IndexField(t.Context(), &corev1.Pod{}, "f", spoil); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		w.pod(t, "x", "web-0", annotated("a", "b"))
		lines := controllerruntime.FactoryOf(w.cache).Mutated()
		if len(lines) != 1 || !strings.HasSuffix(lines[0], `it was handed to the function of the index "field:f"`) {
			t.Errorf("the detector has %q, want a line with the index function", lines)
		}
	})
}

func TestTheDetectorNamesNoFunctionThatOnlyReads(t *testing.T) {
	inWorldWith(t, controllerruntime.NewCacheWith(controllerruntime.DetectMutation(time.Hour)), func(t *testing.T, w *world) {
		w.pod(t, "x", "web-0", annotated("a", "b"))
		defer w.start(t)()
		reads := 0
		for _, culprit := range culprits {
			culprit.run(t, w, func(o crclient.Object) {
				if o.GetAnnotations()["a"] == "b" {
					reads++
				}
			})
		}
		synctest.Wait()
		if lines := controllerruntime.FactoryOf(w.cache).Mutated(); len(lines) != 0 || reads != len(culprits) {
			t.Errorf("after %d reads, the detector has %q", reads, lines)
		}
	})
}
