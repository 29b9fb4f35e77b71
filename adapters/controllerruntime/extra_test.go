// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
)

func TestAListWithinTheBudgetIsDecodedOnce(t *testing.T) {
	for name, limit := range map[string]int64{"with a budget": 1 << 20, "without": 0} {
		t.Run(name, func(t *testing.T) {
			inWorldWith(t, controllerruntime.NewCacheWith(controllerruntime.DecodedBudget(limit)), func(t *testing.T, w *world) {
				for name := range strings.SplitSeq("abcdefghijklmnopqrstuvwxyz", "") {
					w.pod(t, "x", "web-"+name, on("node-"+name))
				}
				defer w.start(t)()
				budget := controllerruntime.FactoryOf(w.cache).Budget()
				for range 4 {
					for _, options := range [][]client.ListOption{{client.UnsafeDisableDeepCopy}, nil} {
						var list corev1.PodList
						if err := w.cache.List(t.Context(), &list, options...); err != nil || len(list.Items) != 26 {
							t.Fatalf("have %d Pods, %v", len(list.Items), err)
						}
						for i := range list.Items {
							if p := &list.Items[i]; "node-"+strings.TrimPrefix(p.Name, "web-") != p.Spec.NodeName {
								t.Errorf("%s is on %s", p.Name, p.Spec.NodeName)
							} else if options == nil {
								p.Spec.NodeName = "mine" // it is the caller's
							}
						}
					}
				}
				status := budget.Status()
				if status.Limit != limit || limit > 0 && (status.Objects != 26 || status.Decodes != 26) {
					t.Errorf("the budget: %+v", status)
				}
			})
		})
	}
}

func TestTheDetectorNamesWhoChangedASharedObject(t *testing.T) {
	inWorldWith(t, controllerruntime.NewCacheWith(controllerruntime.DetectMutation(time.Hour)), func(t *testing.T, w *world) {
		w.pod(t, "x", "web-0")
		defer w.start(t)()
		changing := false
		informer, err := w.cache.GetInformer(t.Context(), &corev1.Pod{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) {
			if changing {
				o.(*corev1.Pod).Labels = map[string]string{"mine": "yes"}
			}
		}}); err != nil {
			t.Fatal(err)
		}
		mutated := controllerruntime.FactoryOf(w.cache).Mutated
		read := func(options ...client.ListOption) *corev1.Pod {
			var list corev1.PodList
			if err := w.cache.List(t.Context(), &list, options...); err != nil || len(list.Items) != 1 {
				t.Fatalf("have %d Pods, %v", len(list.Items), err)
			}
			return &list.Items[0]
		}
		w.pod(t, "x", "web-0", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} })
		read().Labels = map[string]string{"mine": "yes"} // a copy
		read(client.UnsafeDisableDeepCopy)
		if lines := mutated(); len(lines) != 0 {
			t.Errorf("nothing was changed, found %q", lines)
		}

		read(client.UnsafeDisableDeepCopy).Annotations["mine"] = "yes" // the map is shared
		if lines := mutated(); len(lines) != 1 || !strings.Contains(lines[0], "pods x/web-0 at resourceVersion") ||
			!strings.Contains(lines[0], "TestTheDetectorNamesWhoChangedASharedObject") {
			t.Errorf("a reader changed its object, found %q", lines)
		}

		changing = true
		w.pod(t, "x", "web-0", on("node-1"))
		synctest.Wait()
		if lines := mutated(); len(lines) != 1 || !strings.Contains(lines[0], `the handler "github.com/setpoint-io/setpoint/adapters/controllerruntime_test.TestTheDetector`) {
			t.Errorf("a handler changed its object, found %q", lines)
		}
	})
}

// cluster-api sets NewInformer, for the metrics of client-go's informers.
func TestTheInformersOfAProgramAreReplacedIfItSaysSo(t *testing.T) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		w.pod(t, "x", "web-0")
		theirs := 0
		options := crcache.Options{Mapper: w.mapper, NewInformer: func(lw toolscache.ListerWatcher, o runtime.Object, d time.Duration, i toolscache.Indexers) toolscache.SharedIndexInformer {
			theirs++
			return toolscache.NewSharedIndexInformer(lw, o, d, i)
		}}
		for _, one := range []struct {
			options []controllerruntime.Option
			theirs  int
		}{{nil, 1}, {[]controllerruntime.Option{controllerruntime.IgnoreNewInformer()}, 0}} {
			var err error
			theirs = 0
			if w.cache, err = controllerruntime.NewCacheWith(one.options...)(w.api.Config(), options); err != nil {
				t.Fatal(err)
			}
			stop := w.start(t)
			var list corev1.PodList
			if err := w.cache.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
				t.Errorf("have %d Pods, %v", len(list.Items), err)
			}
			if theirs != one.theirs {
				t.Errorf("with %d options, the program made %d informers, want %d", len(one.options), theirs, one.theirs)
			}
			stop()
		}
	})
}

// inWorldWith is as inWorld, with a cache of another function.
func inWorldWith(t *testing.T, build crcache.NewCacheFunc, test func(t *testing.T, w *world)) {
	inWorld(t, crcache.Options{}, func(t *testing.T, w *world) {
		c, err := build(w.api.Config(), crcache.Options{Mapper: w.mapper})
		if err != nil {
			t.Fatal(err)
		}
		w.cache = c
		test(t, w)
	})
}
