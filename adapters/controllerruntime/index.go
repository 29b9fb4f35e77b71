// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// index is an index of a view.
type index struct {
	values toolscache.IndexFunc
	// parts is nil for the index of namespaces, which the informers of controller-runtime have from the
	// beginning. The store finds the objects of a namespace without it, and without decoding one.
	parts map[*part]cache.Index[object.Object]
}

// firstIndexes are the indexes of each view.
func firstIndexes() map[string]*index {
	return map[string]*index{toolscache.NamespaceIndex: {values: toolscache.MetaNamespaceIndexFunc}}
}

// in returns the objects of a part under a value.
func (x *index) in(p *part, value string) iter.Seq2[object.Key, cache.Item[object.Object]] {
	if x.parts == nil {
		return p.informer.Snapshot().Namespace(value)
	}
	return x.parts[p].In(p.informer.Snapshot(), value)
}

// addValues adds the values under which a part has objects.
func (x *index) addValues(to map[string]bool, p *part) {
	if x.parts == nil {
		for key := range p.informer.Snapshot().All() {
			to[key.Namespace] = true
		}
		return
	}
	for value := range x.parts[p].Values(p.informer.Snapshot()) {
		to[value] = true
	}
}

// AddIndexers adds indexes, at any time. They have the objects that exist already too. It is an
// error if the informer has an index of one of the names.
func (v *view) AddIndexers(indexers toolscache.Indexers) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isRemoved() {
		return fmt.Errorf("adding an index to %s: %w", v.kind.gvk, errRemoved)
	}
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		if v.indexes[name] != nil {
			return fmt.Errorf("indexer conflict: the informer of %s has an index %q already", v.kind.gvk, name)
		}
	}
	for name, values := range indexers {
		x := &index{values: values, parts: map[*part]cache.Index[object.Object]{}}
		for _, p := range v.store.parts {
			x.parts[p] = cache.NewIndex(p.informer, v.indexed(name, values))
		}
		v.indexes[name] = x
	}
	return nil
}

// indexed makes a function of an index of the cache of one of client-go.
func (v *view) indexed(name string, values toolscache.IndexFunc) func(cache.Item[object.Object]) ([]string, error) {
	holder := decode.HolderOfIndex(name)
	return func(item cache.Item[object.Object]) ([]string, error) {
		o, err := v.read(item)
		if err != nil {
			return nil, err
		}
		item.GivenTo(holder)
		return values(o)
	}
}

// index returns the index of a name.
func (v *view) index(name string) (*index, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x := v.indexes[name]; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name) // programs compare the text, which is client-go's
}

// fieldIndexer returns the indexer of a field. An object is found under each value in its namespace
// and in all namespaces.
func fieldIndexer(field string, values crclient.IndexerFunc) toolscache.Indexers {
	return toolscache.Indexers{fieldIndex(field): func(o any) ([]string, error) {
		indexed, ok := o.(crclient.Object)
		if !ok {
			return nil, fmt.Errorf("indexing %q: %T is not an object", field, o)
		}
		var keys []string
		for _, value := range values(indexed) {
			keys = append(keys, valueIn("", value))
			if namespace := indexed.GetNamespace(); namespace != "" {
				keys = append(keys, valueIn(namespace, value))
			}
		}
		return keys, nil
	}}
}

// fieldIndex is the name of the index of a field. Programs may add indexes of such names themselves.
// Source: sigs.k8s.io/controller-runtime/pkg/cache/internal, FieldIndexName.
func fieldIndex(field string) string { return "field:" + field }

// valueIn is what a value is indexed by in a namespace, or in all if that is empty.
// Source: sigs.k8s.io/controller-runtime/pkg/cache/internal, KeyToNamespacedKey.
func valueIn(namespace, value string) string {
	if namespace == "" {
		namespace = "__all_namespaces"
	}
	return namespace + "/" + value
}
