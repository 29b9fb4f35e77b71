// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
)

// newFactories returns the factory of built-in kinds, and that of Foos.
func newFactories(kube kubernetes.Interface, example *clientset) (informers.SharedInformerFactory, *fooFactory) {
	// Before: informers.NewSharedInformerFactory(kube, 30*time.Second)
	kubeFactory := clientgo.NewSharedInformerFactory(kube, 30*time.Second)

	exampleFactory := newFooFactory(example, 30*time.Second)
	// Without the next lines, the informer of Foos is the one of client-go.
	exampleFactory.InformerFor(&Foo{}, func(c *clientset, resync time.Duration) cache.SharedIndexInformer {
		return clientgo.NewInformer(c, groupVersion.WithResource("foos"), &Foo{}, clientgo.Options{
			ResyncPeriod: resync, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		})
	})
	return kubeFactory, exampleFactory
}

// fooFactory is the factory of informers of a clientset, as informer-gen writes it.
type fooFactory struct {
	client *clientset
	resync time.Duration

	mu        sync.Mutex
	informers map[reflect.Type]cache.SharedIndexInformer
	started   map[reflect.Type]bool
	tasks     sync.WaitGroup
}

func newFooFactory(client *clientset, resync time.Duration) *fooFactory {
	return &fooFactory{client: client, resync: resync, informers: map[reflect.Type]cache.SharedIndexInformer{}, started: map[reflect.Type]bool{}}
}

// InformerFor returns the informer of a type, which the first call makes.
func (f *fooFactory) InformerFor(example runtime.Object, build func(*clientset, time.Duration) cache.SharedIndexInformer) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	typ := reflect.TypeOf(example)
	if f.informers[typ] == nil {
		f.informers[typ] = build(f.client, f.resync)
	}
	return f.informers[typ]
}

// StartWithContext starts the informers, which run until ctx ends.
func (f *fooFactory) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for typ, informer := range f.informers {
		if !f.started[typ] {
			f.started[typ] = true
			f.tasks.Go(func() { informer.RunWithContext(ctx) })
		}
	}
}

// Shutdown waits until the informers have ended.
func (f *fooFactory) Shutdown() { f.tasks.Wait() }

// Foos returns the informer and the lister of Foos.
func (f *fooFactory) Foos() fooInformer { return fooInformer{f} }

type fooInformer struct{ factory *fooFactory }

// Informer returns the informer of all Foos.
func (i fooInformer) Informer() cache.SharedIndexInformer {
	return i.factory.InformerFor(&Foo{}, func(c *clientset, resync time.Duration) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return c.Foos("").List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return c.Foos("").Watch(ctx, o)
			},
		}, &Foo{}, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	})
}

// Lister returns the lister of Foos.
func (i fooInformer) Lister() listers.ResourceIndexer[*Foo] {
	return listers.New[*Foo](i.Informer().GetIndexer(), groupVersion.WithResource("foos").GroupResource())
}
