// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
)

// arrivals runs an informer, adds 100 Pods, one each 10 ms, and returns at how many moments a handler heard of them, and the longest time
// that one took.
func arrivals(t *testing.T, w *world, start func() cache.SharedInformer[*corev1.Pod], text int) (moments int, longest time.Duration) {
	t.Helper()
	informer := start()
	var mu sync.Mutex // the handler may run at the moment at which a Pod is added
	added, heard := map[string]time.Time{}, map[time.Time]bool{}
	seen := 0
	if _, err := informer.AddHandler(func(e cache.Event[*corev1.Pod]) {
		if e.Initial {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		seen++
		heard[time.Now()] = true
		longest = max(longest, time.Since(added[e.New.Key().Name]))
	}, cache.HandlerOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := informer.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		name := fmt.Sprint("web-", i)
		mu.Lock()
		added[name] = time.Now()
		mu.Unlock()
		w.add(t, name, func(p *corev1.Pod) { p.Annotations = map[string]string{"text": strings.Repeat("x", text)} })
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second)
	synctest.Wait()
	mu.Lock()
	defer mu.Unlock()
	if seen != 100 {
		t.Errorf("the handler heard of %d Pods, want 100", seen)
	}
	return len(heard), longest
}

func TestChangesThatMayWaitAreReadTogether(t *testing.T) {
	const wait = 250 * time.Millisecond
	metadata := cache.OfKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	for _, c := range []struct {
		name    string
		options []cache.InformerOption
		other   []cache.InformerOption // of another user, of the metadata
		text    int                    // bytes of an annotation
		gathers bool
	}{
		{"alone", []cache.InformerOption{cache.Gathers(wait)}, nil, 0, true},
		{"objects that take several reads", []cache.InformerOption{cache.Gathers(wait)}, nil, 20_000, true},
		{"without", nil, nil, 0, false},
		{"shared with one that waits longer", []cache.InformerOption{cache.Gathers(wait)}, []cache.InformerOption{metadata, cache.Gathers(time.Minute)}, 0, true},
		{"shared with one that does not wait", []cache.InformerOption{cache.Gathers(wait)}, []cache.InformerOption{metadata}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add(t, "before")
				began := time.Now()
				informer := func() cache.SharedInformer[*corev1.Pod] {
					i := cache.Informer[*corev1.Pod](w.factory, c.options...)
					if c.other != nil {
						cache.Informer[*metav1.PartialObjectMetadata](w.factory, c.other...)
					}
					return i
				}
				defer w.run(t)()
				moments, longest := arrivals(t, w, informer, c.text)
				if n := len(w.factory.Status()); n != 1 {
					t.Errorf("%d informers, want one", n)
				}
				if took := time.Since(began) - 2*time.Second; took > time.Millisecond {
					t.Errorf("the first state waited for %s", took)
				}
				if c.gathers && (moments > 10 || longest > wait) || !c.gathers && (moments < 100 || longest > time.Millisecond) {
					t.Errorf("the handler heard at %d moments, %s after a change at most", moments, longest)
				}
			})
		})
	}
}

// More than a buffer of changes is read without a pause in between.
func TestManyChangesThatMayWaitDoNotWaitForEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		informer := cache.Informer[*corev1.Pod](w.factory, cache.Gathers(250*time.Millisecond))
		defer w.run(t)()
		if err := informer.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for i := range 1000 {
			w.add(t, fmt.Sprint("web-", i))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := informer.Snapshot().Len(); n != 1000 {
			t.Errorf("a second after 1,000 changes the informer has %d", n)
		}
	})
}
