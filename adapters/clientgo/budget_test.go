// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	setpoint "github.com/setpoint-io/setpoint/cache"
)

func TestInformersShareABudgetAndDetectMutation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log strings.Builder
		logger := funcr.New(func(_, line string) {
			mu.Lock()
			defer mu.Unlock()
			log.WriteString(line + "\n")
		}, funcr.Options{})
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		budget := setpoint.NewBudget(1 << 20)
		var tasks sync.WaitGroup
		var stores [2]*clientgo.Informer
		for i := range stores {
			source := fcache.NewFakeControllerSource()
			defer source.Shutdown()
			source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"a": "b"}}})
			stores[i] = clientgo.NewSharedIndexInformerWithOptions(source, &corev1.Pod{}, clientgo.Options{Budget: budget, DetectMutation: time.Minute})
			tasks.Go(func() { stores[i].RunWithContext(ctx) })
		}
		synctest.Wait()
		for _, informer := range stores {
			if got := len(informer.GetStore().List()); got != 1 {
				t.Errorf("have %d Pods", got)
			}
		}
		if got := budget.Status(); got.Objects != 2 {
			t.Errorf("the budget should have a Pod of each informer: %+v", got)
		}
		stores[0].GetStore().List()[0].(*corev1.Pod).Annotations["mine"] = "yes"
		stores[0].GetStore().List() // the lock of which orders the change before the check
		time.Sleep(61 * time.Second)
		synctest.Wait()
		cancel()
		tasks.Wait()
		text := log.String()
		if strings.Count(text, "an object of the cache was changed") != 1 || !strings.Contains(text, "TestInformersShareABudgetAndDetectMutation") {
			t.Errorf("the log does not name this function once:\n%s", text)
		}
	})
}
