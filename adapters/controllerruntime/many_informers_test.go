// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// crowd is many kinds with a handler each. Some of them have an object, and some never sync.
type crowd struct {
	kinds     []object.Resource
	informers []crcache.Informer
	handlers  []*events
}

// How a kind of a crowd is, by its number.
func hasObject(i int) bool { return i%3 == 0 }
func isRefused(i int) bool { return i%10 == 1 } // the server refuses its lists and watches
func isSlow(i int) bool    { return i%10 == 2 } // the server does not answer while the cache runs

// newCrowd makes the server know the kinds.
func newCrowd(t *testing.T, w *world, many int) *crowd {
	t.Helper()
	c := &crowd{informers: make([]crcache.Informer, many), handlers: make([]*events, many)}
	refused, slow := map[string]bool{}, map[string]bool{}
	for i := range many {
		r := object.Resource{Group: "example.com", Version: "v1", Plural: fmt.Sprintf("kind%ds", i), Kind: fmt.Sprintf("Kind%d", i), Namespaced: true}
		c.kinds = append(c.kinds, r)
		refused[r.Plural], slow[r.Plural] = isRefused(i), isSlow(i)
		w.api.Serve(r)
		w.serve(r)
		if hasObject(i) {
			c.put(t, w, i, "first")
		}
	}
	w.api.Before(func(q *fakeapi.Request) *metav1.Status {
		if refused[q.Resource.Plural] {
			return fakeapi.Forbidden(q.Resource.Plural)
		}
		return nil
	})
	w.api.Delay(func(q *fakeapi.Request) time.Duration {
		if slow[q.Resource.Plural] {
			return 1000 * time.Hour
		}
		return 0
	})
	return c
}

func (c *crowd) put(t *testing.T, w *world, i int, name string) {
	t.Helper()
	u := unstructuredOf(c.kinds[i].GroupVersionKind())
	u.SetNamespace("team-a")
	u.SetName(name)
	if err := w.api.Of(c.kinds[i]).Put(u); err != nil {
		t.Fatal(err)
	}
}

// watch makes the informers of some kinds, in one view or the other, each with a handler.
func (c *crowd) watch(t *testing.T, w *world, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		var sample crclient.Object = unstructuredOf(c.kinds[i].GroupVersionKind())
		if i%2 == 0 {
			sample = metadataOf(c.kinds[i].GroupVersionKind())
		}
		c.informers[i], c.handlers[i] = w.informer(t, sample), &events{}
		if _, err := c.informers[i].AddEventHandler(c.handlers[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// The bubble fails if one of the informers leaves a goroutine behind.
func TestAThousandInformersWithHandlersThatStopWhileSomeSync(t *testing.T) {
	inWorld(t, crcache.Options{DefaultWatchErrorHandler: ignoreFailures}, func(t *testing.T, w *world) {
		const many = 1000
		c := newCrowd(t, w, many)
		c.watch(t, w, 0, many/2)
		stop := w.start(t)
		c.watch(t, w, many/2, many)
		time.Sleep(time.Minute)
		synctest.Wait()
		synced := 0
		for i := range many {
			is, want := c.informers[i].HasSynced(), !isRefused(i) && !isSlow(i)
			if is != want {
				t.Errorf("the informer of kind %d has synced: %t, want %t", i, is, want)
			}
			first := ""
			if want && hasObject(i) {
				first = "initial first"
			}
			if got := c.handlers[i].was(); got != first {
				t.Errorf("the handler of kind %d got %q, want %q", i, got, first)
			}
			if want {
				synced++
				c.put(t, w, i, "second")
			}
		}
		synctest.Wait()
		heard := 0
		for _, h := range c.handlers {
			if h.was() == "add second" {
				heard++
			}
		}
		if heard != synced {
			t.Errorf("%d handlers got a change, want %d", heard, synced)
		}
		waiting := make(chan bool)
		go func() { waiting <- w.cache.WaitForCacheSync(t.Context()) }()
		synctest.Wait()
		stop()
		if <-waiting {
			t.Error("the cache has synced without the kinds that the server refuses")
		}
		for i := range many {
			if !c.informers[i].IsStopped() {
				t.Errorf("the informer of kind %d has not stopped", i)
			}
		}
	})
}
