// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/client"
)

// NewSharedInformerFactory returns a factory with the informers and listers that client-go
// generates, for all namespaces, on the cache of Setpoint. The server and the credentials are those of
// the clientset.
//
// A clientset without a connection, as the fakes for unit tests are, cannot be read by the cache:
// its factory is client-go's own.
func NewSharedInformerFactory(c kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(c, resync)
}

// NewSharedInformerFactoryWithOptions is as [NewSharedInformerFactory], with options.
func NewSharedInformerFactoryWithOptions(c kubernetes.Interface, resync time.Duration, options ...SharedInformerOption) informers.SharedInformerFactory {
	s := newSettings(resync, options)
	config, err := configOf(c)
	if err != nil {
		return informers.NewSharedInformerFactoryWithOptions(c, resync, s.ofClientGo()...)
	}
	return &factory{informerSet: newInformerSet[reflect.Type](), settings: s, client: c, config: config}
}

// factory implements informers.SharedInformerFactory. Its groups are in factory_groups.go.
type factory struct {
	*informerSet[reflect.Type]
	settings settings
	client   kubernetes.Interface
	config   *rest.Config
}

// InformerName returns the name of [WithInformerName].
func (f *factory) InformerName() *cache.InformerName { return f.settings.name }

// Shutdown starts no more informers, and waits until those that were started have ended.
func (f *factory) Shutdown() {
	f.informerSet.Shutdown()
	f.settings.name.Release()
}

// WaitForCacheSyncWithContext waits until the informers that were started have synced or ctx ends.
func (f *factory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	synced, all := f.awaitSync(ctx)
	if all {
		return cache.SyncResult{Synced: synced}
	}
	return cache.SyncResult{Synced: synced, Err: context.Cause(ctx)}
}

// InformerFor returns the informer of a type. The first call makes it: it has the resource, the
// namespace, the selectors and the indexers of the informer that build makes. The factory takes an
// informer as it is if it is one of this package, if build returns the same one again, or if it does
// not use the client that build gets. To find that out, the factory calls a constructor of the
// program's own twice.
func (f *factory) InformerFor(example runtime.Object, build internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.get(reflect.TypeOf(example), func() cache.SharedIndexInformer {
		informer := f.wished(example, build)
		f.settings.transformed(informer)
		return informer
	})
}

// wished returns an informer on the cache of Setpoint that reads what the one of build reads, or the
// one of build.
func (f *factory) wished(example runtime.Object, build internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	resync := f.settings.resyncFor(example)
	built := sync.OnceValue(func() cache.SharedIndexInformer { return build(f.client, resync) })
	wanted, err := wishOf(build, built, resync)
	switch {
	case errors.Is(err, errOnSetpoint):
		return built()
	case err != nil:
		klog.Background().Info("Warning: an informer is not on the cache of Setpoint: what it reads is not known",
			"type", fmt.Sprintf("%T", example), "reason", err.Error())
		return built()
	}
	return newInformer(source{config: f.config, resource: wanted.resource, example: example}, Options{
		Namespace: wanted.namespace, LabelSelector: wanted.labels, FieldSelector: wanted.fields,
		ResyncPeriod: resync, Indexers: wanted.indexers, KeepManagedFields: f.settings.keepManaged,
		Budget: f.settings.budget, DetectMutation: f.settings.detect,
	})
}

// ForResource returns the informer and the lister of a built-in resource.
func (f *factory) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	for kind, typ := range scheme.Scheme.KnownTypes(resource.GroupVersion()) {
		gvk := resource.GroupVersion().WithKind(kind)
		if client.Plural(gvk) != resource.GroupResource().String() || !client.Builtin(gvk.GroupKind()) {
			continue
		}
		example := reflect.New(typ).Interface().(runtime.Object)
		return genericInformer{f.forType(example, resource), resource.GroupResource()}, nil
	}
	return nil, fmt.Errorf("no informer found for %v", resource)
}

// forType returns the informer of a type as the generated ones are: with the index of namespaces.
func (f *factory) forType(example runtime.Object, resource schema.GroupVersionResource) cache.SharedIndexInformer {
	return f.get(reflect.TypeOf(example), func() cache.SharedIndexInformer {
		informer := newInformer(source{config: f.config, resource: resource, example: example}, f.settings.optionsOf(f.settings.resyncFor(example)))
		f.settings.transformed(informer)
		return informer
	})
}

// genericInformer implements informers.GenericInformer.
type genericInformer struct {
	informer cache.SharedIndexInformer
	resource schema.GroupResource
}

// Informer returns the informer.
func (g genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

// Lister returns a lister of the informer's objects.
func (g genericInformer) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}
