// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

// The bubble fails if a goroutine is left: the caches of these tests do not run.
func TestAnInformerOfSeveralNamespacesNeedsNoGoroutine(t *testing.T) {
	namespaces := map[string]crcache.Config{"team-a": {}, "team-b": {}}
	for name, use := range map[string]func(t *testing.T, informer crcache.Informer){
		"with a handler": func(t *testing.T, informer crcache.Informer) {
			if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err != nil {
				t.Fatal(err)
			}
		},
		"with a handler that was removed while a program waited for it": func(t *testing.T, informer crcache.Informer) {
			r, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{})
			if err != nil {
				t.Fatal(err)
			}
			done := r.HasSyncedChecker().Done()
			if err := informer.RemoveEventHandler(r); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case <-done:
				t.Error("a handler that was removed has synced")
			default:
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, crcache.Options{DefaultNamespaces: namespaces}, func(t *testing.T, w *world) {
				informer, err := w.cache.GetInformer(t.Context(), &corev1.Pod{})
				if err != nil {
					t.Fatal(err)
				}
				use(t, informer)
			})
		})
	}
}

func TestAnInformerOfSeveralNamespacesHasSyncedWhenAllHave(t *testing.T) {
	namespaces := map[string]crcache.Config{"team-a": {}, "team-b": {}}
	inWorld(t, crcache.Options{DefaultNamespaces: namespaces}, func(t *testing.T, w *world) {
		informer, err := w.cache.GetInformer(t.Context(), &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{})
		if err != nil {
			t.Fatal(err)
		}
		checkers := []toolscache.DoneChecker{informer.HasSyncedChecker(), r.HasSyncedChecker()}
		for _, c := range checkers {
			if toolscache.IsDone(c) {
				t.Errorf("%s is done before the start", c.Name())
			}
		}
		defer w.start(t)()
		for _, c := range checkers {
			if !toolscache.IsDone(c) {
				t.Errorf("%s is not done", c.Name())
			}
		}
	})
}
