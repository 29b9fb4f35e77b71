// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	setpoint "github.com/setpoint-io/setpoint/cache"
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
	s := settings{resync: resync, budget: setpoint.NewBudget(setpoint.DefaultDecodedBudget)}
	for _, option := range options {
		option(&s)
	}
	config, err := configOf(c)
	if err != nil {
		return informers.NewSharedInformerFactoryWithOptions(c, resync, s.ofClientGo()...)
	}
	f := &factory{informerSet: newInformerSet[reflect.Type](), settings: s, client: c, config: config, resyncOf: map[reflect.Type]time.Duration{}}
	for o, period := range s.resyncOf {
		f.resyncOf[reflect.TypeOf(o)] = period
	}
	return f
}

// factory implements informers.SharedInformerFactory. Its groups are in factory_groups.go.
type factory struct {
	*informerSet[reflect.Type]
	settings settings
	client   kubernetes.Interface
	config   *rest.Config
	resyncOf map[reflect.Type]time.Duration
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
// namespace, the selectors and the indexers of the informer that build makes. If build makes an
// informer that does not use its client, the factory takes that informer as it is.
func (f *factory) InformerFor(example runtime.Object, build internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.get(reflect.TypeOf(example), func() cache.SharedIndexInformer {
		resync := f.resyncFor(example)
		wanted, err := wishOf(build, resync)
		var informer cache.SharedIndexInformer
		if err != nil {
			klog.Background().Info("Warning: an informer is not on the cache of Setpoint: what it reads is not known",
				"type", fmt.Sprintf("%T", example), "reason", err.Error())
			informer = build(f.client, resync)
		} else {
			informer = newInformer(source{config: f.config, resource: wanted.resource, example: example}, Options{
				Namespace: wanted.namespace, LabelSelector: wanted.labels, FieldSelector: wanted.fields,
				ResyncPeriod: resync, Indexers: wanted.indexers, KeepManagedFields: f.settings.keepManaged,
				Budget: f.settings.budget, DetectMutation: f.settings.detect,
			})
		}
		f.transformed(informer)
		return informer
	})
}

func (f *factory) resyncFor(example runtime.Object) time.Duration {
	if period, ok := f.resyncOf[reflect.TypeOf(example)]; ok {
		return period
	}
	return f.settings.resync
}

// transformed sets the transform of the factory.
func (f *factory) transformed(informer cache.SharedIndexInformer) {
	if f.settings.transform == nil {
		return
	}
	if err := informer.SetTransform(f.settings.transform); err != nil {
		klog.Background().Error(err, "The transform of the factory cannot be set")
	}
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
		options := optionsOf(f.settings.namespace, f.resyncFor(example), f.settings.tweak, f.settings.keepManaged)
		options.Budget, options.DetectMutation = f.settings.budget, f.settings.detect
		informer := newInformer(source{config: f.config, resource: resource, example: example}, options)
		f.transformed(informer)
		return informer
	})
}

// optionsOf returns the options of an informer in a factory, with the index that listers need.
func optionsOf(namespace string, resync time.Duration, tweak func(*metav1.ListOptions), keepManaged bool) Options {
	var list metav1.ListOptions
	if tweak != nil {
		tweak(&list)
	}
	return Options{
		Namespace: namespace, LabelSelector: list.LabelSelector, FieldSelector: list.FieldSelector, ResyncPeriod: resync,
		Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, KeepManagedFields: keepManaged,
		Budget: setpoint.NewBudget(setpoint.DefaultDecodedBudget),
	}
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
