// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/object"
)

// kind is a kind in the cache: the views that programs have asked for, and the stores that these
// read from. The lock of the cache protects it.
type kind struct {
	cache    *informerCache
	gvk      schema.GroupVersionKind
	resource object.Resource
	parts    map[string]crcache.Config // by namespace
	apart    bool                      // each view has a store of its own
	views    map[decode.View]*view
}

func (c *informerCache) newKind(gvk schema.GroupVersionKind) (*kind, error) {
	mapping, err := c.options.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	k := &kind{
		cache: c, gvk: gvk, parts: c.settings.of(gvk, namespaced), views: map[decode.View]*view{},
		resource: object.Resource{
			Group: mapping.Resource.Group, Version: mapping.Resource.Version, Plural: mapping.Resource.Resource,
			Kind: gvk.Kind, Namespaced: namespaced,
		},
	}
	for _, config := range k.parts {
		// A transform may treat the types of the views differently, so it gets each of them.
		k.apart = k.apart || config.Transform != nil && !dropsManagedFields(config.Transform)
	}
	return k, nil
}

// add returns a view, and makes it if there is none.
func (k *kind) add(form decode.View) (*view, error) {
	if v := k.views[form]; v != nil {
		return v, nil
	}
	s, err := k.storeFor(form)
	if err != nil {
		return nil, err
	}
	v := newView(k, form, s)
	k.views[form] = v
	return v, nil
}

// storeFor returns the store that a view reads from: one that another view uses, if it has what
// the view needs.
func (k *kind) storeFor(form decode.View) (*store, error) {
	if _, err := k.sample(form); err != nil {
		return nil, err
	}
	if k.apart {
		return k.newStore(form, nil)
	}
	var ofMetadata *store
	for _, other := range k.views {
		if form == decode.Metadata || other.store.reader.Stored != decode.Metadata {
			return other.store, nil
		}
		ofMetadata = other.store
	}
	return k.newStore(form, ofMetadata)
}

// drop takes a view out of the kind. It returns what ends the view, and its store if no other view uses it. That may
// wait for an index that is being added to the view, whose function may read from the cache, so it is called without the
// lock of the cache.
func (k *kind) drop(form decode.View) (end func()) {
	v := k.views[form]
	if v == nil {
		return func() {}
	}
	delete(k.views, form)
	for _, other := range k.views {
		if other.store == v.store {
			return v.remove
		}
	}
	return func() {
		v.remove()
		v.store.release()
	}
}

// sample returns an empty object of the type that a view has.
func (k *kind) sample(form decode.View) (object.Object, error) {
	switch form {
	case decode.Unstructured:
		u := new(unstructured.Unstructured)
		u.SetGroupVersionKind(k.gvk)
		return u, nil
	case decode.Metadata:
		return new(metav1.PartialObjectMetadata), nil
	case decode.Typed:
	}
	o, err := k.cache.options.Scheme.New(k.gvk)
	if err != nil {
		return nil, err
	}
	typed, ok := o.(object.Object)
	if !ok {
		return nil, fmt.Errorf("objects of type %T have no metadata", o)
	}
	return typed, nil
}
