// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// How a kind of many is, by its number.
func hasObject(i int) bool { return i%3 == 0 }
func isRefused(i int) bool { return i%10 == 1 } // the server refuses its lists and watches
func isSlow(i int) bool    { return i%10 == 2 } // the server does not answer while the factory runs

// kindsOf makes the server serve many kinds.
func kindsOf(t *testing.T, w *world, many int) []object.Resource {
	t.Helper()
	var kinds []object.Resource
	refused, slow := map[string]bool{}, map[string]bool{}
	for i := range many {
		// Each informer reads the discovery of a group, so the groups are small.
		r := object.Resource{Group: fmt.Sprintf("group%d.example.com", i/10), Version: "v1", Plural: fmt.Sprintf("kind%ds", i), Kind: fmt.Sprintf("Kind%d", i), Namespaced: true}
		kinds = append(kinds, r)
		refused[r.Plural], slow[r.Plural] = isRefused(i), isSlow(i)
		w.Serve(r)
		if hasObject(i) {
			w.putOf(t, r, "first")
		}
	}
	w.Before(func(q *fakeapi.Request) *metav1.Status {
		if refused[q.Resource.Plural] {
			return fakeapi.Forbidden(q.Resource.Plural)
		}
		return nil
	})
	w.Delay(func(q *fakeapi.Request) time.Duration {
		if slow[q.Resource.Plural] {
			return 1000 * time.Hour
		}
		return 0
	})
	return kinds
}

func (w *world) putOf(t *testing.T, r object.Resource, name string) {
	t.Helper()
	u := new(unstructured.Unstructured)
	u.SetGroupVersionKind(r.GroupVersionKind())
	u.SetNamespace("team-a")
	u.SetName(name)
	if err := w.Of(r).Put(u); err != nil {
		t.Fatal(err)
	}
}

// The bubble fails if one of them leaves a
// goroutine behind.
func TestAThousandInformersWithHandlersThatStopWhileSomeSync(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const many = 1000
		kinds := kindsOf(t, w, many)
		factory := (&side{w, true}).dynamic(t)
		informers, handlers := make([]cache.SharedIndexInformer, many), make([]heard, many)
		watch := func(from, to int) {
			for i := from; i < to; i++ {
				informers[i] = factory.ForResource(kinds[i].GroupVersionResource()).Informer()
				add(t, informers[i], &handlers[i])
			}
		}
		watch(0, many/2)
		again, stop := startAgain(factory)
		watch(many/2, many)
		again()
		time.Sleep(time.Minute)
		synctest.Wait()
		synced := 0
		for i := range many {
			is, want := informers[i].HasSynced(), !isRefused(i) && !isSlow(i)
			if is != want {
				t.Errorf("the informer of kind %d has synced: %t, want %t", i, is, want)
			}
			first := ""
			if want && hasObject(i) {
				first = "initial first"
			}
			if got := handlers[i].calledUntilNow(); got != first {
				t.Errorf("the handler of kind %d got %q, want %q", i, got, first)
			}
			if want {
				synced++
				w.putOf(t, kinds[i], "second")
			}
		}
		synctest.Wait()
		heardOf := 0
		for i := range handlers {
			if handlers[i].calledUntilNow() == "add second" {
				heardOf++
			}
		}
		if heardOf != synced {
			t.Errorf("%d handlers got a change, want %d", heardOf, synced)
		}
		stop()
		for i, informer := range informers {
			if !informer.IsStopped() {
				t.Errorf("the informer of kind %d has not stopped", i)
			}
		}
	})
}
