// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/adapters/internal/podload"
)

// BenchmarkFactories compares the factory of this package with that of client-go: the heap of a
// cached Pod, and the time of a Get and of a List of a namespace.
func BenchmarkFactories(b *testing.B) {
	clientset := kubernetes.NewForConfigOrDie(podload.Serve(b))
	for name, build := range map[string]func() informers.SharedInformerFactory{
		"setpoint":  func() informers.SharedInformerFactory { return clientgo.NewSharedInformerFactory(clientset, 0) },
		"client-go": func() informers.SharedInformerFactory { return informers.NewSharedInformerFactory(clientset, 0) },
	} {
		b.Run(name, func(b *testing.B) { benchFactory(b, build()) })
	}
}

func benchFactory(b *testing.B, factory informers.SharedInformerFactory) {
	before := podload.Heap()
	informer := factory.Core().V1().Pods()
	lister := informer.Lister()
	factory.StartWithContext(b.Context())
	if !cache.WaitFor(b.Context(), "", informer.Informer().HasSyncedChecker()) {
		b.Fatal("not synced")
	}
	perPod := float64(podload.Heap()-before) / podload.Count
	b.Run("Get", func(b *testing.B) {
		b.ReportMetric(perPod, "heap-B/Pod")
		for i := range b.N {
			name := i * 7919 % podload.Count
			if _, err := lister.Pods(podload.NamespaceOf(name)).Get(podload.NameOf(name)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("GetAgain", func(b *testing.B) {
		for range b.N {
			if _, err := lister.Pods(podload.NamespaceOf(1)).Get(podload.NameOf(1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ListNamespace", func(b *testing.B) {
		for range b.N {
			found, err := informer.Informer().GetIndexer().ByIndex(cache.NamespaceIndex, podload.NamespaceOf(1))
			if err != nil || len(found) != podload.Count/podload.Namespaces {
				b.Fatal(len(found), err)
			}
		}
	})
}
