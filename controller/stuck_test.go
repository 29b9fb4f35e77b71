// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// runCounts counts the runs of each key.
type runCounts struct {
	mu sync.Mutex
	of map[string]int
}

func (r *runCounts) reconcile(_ context.Context, req controller.Request) (controller.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]int{}
	}
	r.of[req.Key.Name]++
	return controller.Result{}, nil
}

func (r *runCounts) take() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.of
	r.of = nil
	return taken
}

// A mapping that does not return stops its own controller and no other that shares the
// informer. When it returns, everything is looked at that it may have missed: also who an
// object belonged to only in between.
func TestAStuckMappingHoldsUpItsOwnControllerAlone(t *testing.T) {
	const limit = 10_000
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("child", "between", "gone")
		synctest.Wait()
		stuck := make(chan struct{})
		var stuckRuns, otherRuns runCounts
		initial := false
		noted := func(e cache.Event[*corev1.Pod]) bool { initial = e.Initial; return true }
		one := controller.New("stuck", stuckRuns.reconcile, b.logger(), controller.For(b.pods),
			controller.Watches(b.pods, func(pod cache.Item[*corev1.Pod], add func(object.Key)) {
				if !initial {
					<-stuck
				}
				if notes, err := pod.Annotations(); err == nil && notes["of"] != "" {
					add(key("of-" + notes["of"]))
				}
				add(key("after-" + pod.Key().Name))
			}, noted))
		other := controller.New("other", otherRuns.reconcile, b.logger(), controller.For(b.pods))
		defer b.start(one)()
		defer b.start(other)()
		synctest.Wait()
		for i := range limit + 10 {
			b.add(fmt.Sprint("n-", i))
			if i%500 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		of := func(name string) { b.patch("child", map[string]any{"annotations": map[string]any{"of": name}}) }
		of("first")
		synctest.Wait()
		of("between")
		synctest.Wait()
		of("last")
		if err := client.For[*corev1.Pod](b.client).Delete(t.Context(), key("gone")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(otherRuns.take()); n != limit+10+4 {
			t.Errorf("the other controller has run for %d keys, want %d", n, limit+10+4)
		}
		var page strings.Builder
		if err := b.factory.WriteStatus(&page); err != nil || !strings.Contains(page.String(), "behind: changes are merged") {
			t.Errorf("%v, the status page:\n%s", err, &page)
		}
		most := 0
		for _, h := range b.pods.Handle().Status().Handlers {
			if most = max(most, h.Waiting); h.Merging != (h.Waiting > 0) || h.Waiting > 0 && h.Name != "stuck" {
				t.Errorf("%+v", h)
			}
		}
		if most > limit+100 {
			t.Errorf("%d wait", most)
		}
		stuckRuns.take()
		close(stuck)
		time.Sleep(time.Minute)
		synctest.Wait()
		ran := stuckRuns.take()
		for _, name := range []string{"of-last", "after-gone", "between", "child", "parent", fmt.Sprint("n-", limit+9)} {
			if ran[name] == 0 {
				t.Errorf("%s was not looked at when the mapping had returned", name)
			}
		}
		// And each change starts its runs again.
		of("first")
		synctest.Wait()
		if ran := stuckRuns.take(); ran["of-first"] != 1 || ran["of-last"] != 1 {
			t.Errorf("runs of %v", ran)
		}
	})
}
