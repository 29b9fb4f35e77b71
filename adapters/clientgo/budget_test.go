// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
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

func TestFactoriesOfResourcesTakeTheOptionsOfTypedOnes(t *testing.T) {
	r := corev1.SchemeGroupVersion.WithResource("pods")
	for name, test := range map[string]struct {
		kind  metav1.Object
		build func(*rest.Config, ...clientgo.SharedInformerOption) started
	}{
		"dynamic": {&unstructured.Unstructured{}, func(c *rest.Config, o ...clientgo.SharedInformerOption) started {
			return clientgo.NewDynamicSharedInformerFactoryWithOptions(c, 0, o...)
		}},
		"metadata": {&metav1.PartialObjectMetadata{}, func(c *rest.Config, o ...clientgo.SharedInformerOption) started {
			return clientgo.NewMetadataSharedInformerFactoryWithOptions(c, 0, o...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.put(t, pod("a"), pod("b", in("team-b")), pod("c", labeled("app", "web")))
				var transformed atomic.Int64
				options := []clientgo.SharedInformerOption{
					clientgo.WithNamespace("team-a"), clientgo.WithManagedFields(),
					clientgo.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app" }),
					clientgo.WithCustomResyncConfig(map[metav1.Object]time.Duration{test.kind: 10 * time.Minute}),
					clientgo.WithTransform(func(o any) (any, error) { transformed.Add(1); return o, nil }),
				}
				for limit, want := range map[int64]int{0: 0, 1 << 20: 1} {
					factory := test.build(w.Config(), append(slices.Clone(options), clientgo.WithDecodedBudget(limit))...)
					informer := factory.ForResource(r).Informer()
					var resyncs atomic.Int64
					if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { resyncs.Add(1) }}); err != nil {
						t.Fatal(err)
					}
					stop := start(factory)
					time.Sleep(11 * time.Minute)
					synctest.Wait()
					for range 3 {
						if got := names(informer.GetStore().List()); got != "c" {
							t.Errorf("the store has %q", got)
						}
					}
					if resyncs.Load() != 1 || transformed.Load() == 0 {
						t.Errorf("%d resyncs, %d calls of the transform", resyncs.Load(), transformed.Load())
					}
					if got := clientgo.BudgetOf(informer).Status(); got.Limit != limit || got.Objects != want {
						t.Errorf("the budget is %+v, want %d bytes with %d objects", got, limit, want)
					}
					stop()
				}
			})
		})
	}
}

// started is a factory of resources.
type started interface {
	ForResource(schema.GroupVersionResource) informers.GenericInformer
	Start(<-chan struct{})
	Shutdown()
}
