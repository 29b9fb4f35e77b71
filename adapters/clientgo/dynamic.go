// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/metadata/metadatalister"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// NewDynamicSharedInformerFactory returns a factory of informers of unstructured objects, in the
// interface of k8s.io/client-go/dynamic/dynamicinformer. It takes the configuration of the server:
// a dynamic client does not say where it is connected to.
func NewDynamicSharedInformerFactory(config *rest.Config, resync time.Duration) dynamicinformer.DynamicSharedInformerFactory {
	return NewFilteredDynamicSharedInformerFactory(config, resync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory is as [NewDynamicSharedInformerFactory], for a namespace
// and for what the selectors of tweak select, which may be nil.
func NewFilteredDynamicSharedInformerFactory(config *rest.Config, resync time.Duration, namespace string, tweak dynamicinformer.TweakListOptionsFunc) dynamicinformer.DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(config, resync, WithNamespace(namespace), WithTweakListOptions(internalinterfaces.TweakListOptionsFunc(tweak)))
}

// NewDynamicSharedInformerFactoryWithOptions is as [NewDynamicSharedInformerFactory], with the options of
// [NewSharedInformerFactoryWithOptions]. A transform gets unstructured objects. [WithCustomResyncConfig]
// takes the period of *unstructured.Unstructured; [WithInformerName] has no effect.
func NewDynamicSharedInformerFactoryWithOptions(config *rest.Config, resync time.Duration, options ...SharedInformerOption) dynamicinformer.DynamicSharedInformerFactory {
	return newResourceFactory(config, resync, options, func() runtime.Object { return &unstructured.Unstructured{} },
		func(x cache.Indexer, r schema.GroupVersionResource) cache.GenericLister {
			return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(x, r))
		})
}

// NewMetadataSharedInformerFactory returns a factory of informers of metadata, in the interface of
// k8s.io/client-go/metadata/metadatainformer. It takes the configuration of the server: a client of
// metadata does not say where it is connected to.
func NewMetadataSharedInformerFactory(config *rest.Config, resync time.Duration) metadatainformer.SharedInformerFactory {
	return NewFilteredMetadataSharedInformerFactory(config, resync, metav1.NamespaceAll, nil)
}

// NewFilteredMetadataSharedInformerFactory is as [NewMetadataSharedInformerFactory], for a namespace
// and for what the selectors of tweak select, which may be nil.
func NewFilteredMetadataSharedInformerFactory(config *rest.Config, resync time.Duration, namespace string, tweak metadatainformer.TweakListOptionsFunc) metadatainformer.SharedInformerFactory {
	return NewMetadataSharedInformerFactoryWithOptions(config, resync, WithNamespace(namespace), WithTweakListOptions(internalinterfaces.TweakListOptionsFunc(tweak)))
}

// NewMetadataSharedInformerFactoryWithOptions is as [NewMetadataSharedInformerFactory], with the options of
// [NewSharedInformerFactoryWithOptions]. A transform gets metadata. [WithCustomResyncConfig] takes the
// period of *metav1.PartialObjectMetadata; [WithInformerName] has no effect.
func NewMetadataSharedInformerFactoryWithOptions(config *rest.Config, resync time.Duration, options ...SharedInformerOption) metadatainformer.SharedInformerFactory {
	return newResourceFactory(config, resync, options, func() runtime.Object { return &metav1.PartialObjectMetadata{} },
		func(x cache.Indexer, r schema.GroupVersionResource) cache.GenericLister {
			return metadatalister.NewRuntimeObjectShim(metadatalister.New(x, r))
		})
}

func newResourceFactory(config *rest.Config, resync time.Duration, options []SharedInformerOption, example func() runtime.Object,
	lister func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister,
) *resourceFactory {
	s := newSettings(resync, options)
	return &resourceFactory{
		informerSet: newInformerSet[schema.GroupVersionResource](), config: config, settings: s,
		options: s.optionsOf(s.resyncFor(example())), example: example, lister: lister,
	}
}

// resourceFactory makes informers by resource. It implements the factories of unstructured objects
// and of metadata.
type resourceFactory struct {
	*informerSet[schema.GroupVersionResource]
	config   *rest.Config
	settings settings
	options  Options
	example  func() runtime.Object
	lister   func(cache.Indexer, schema.GroupVersionResource) cache.GenericLister
}

// ForResource returns the informer and the lister of a resource. Its kind is looked up on the
// server when the informer runs, again and again until the server serves it.
func (f *resourceFactory) ForResource(r schema.GroupVersionResource) informers.GenericInformer {
	informer := f.get(r, func() cache.SharedIndexInformer {
		informer := newInformer(source{config: f.config, resource: r, example: f.example()}, f.options)
		f.settings.transformed(informer)
		return informer
	})
	return resourceInformer{informer, f.lister(informer.GetIndexer(), r)}
}

// resourceInformer implements informers.GenericInformer.
type resourceInformer struct {
	informer cache.SharedIndexInformer
	lister   cache.GenericLister
}

// Informer returns the informer.
func (r resourceInformer) Informer() cache.SharedIndexInformer { return r.informer }

// Lister returns the lister.
func (r resourceInformer) Lister() cache.GenericLister { return r.lister }
