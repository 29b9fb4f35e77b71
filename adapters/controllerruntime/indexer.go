// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// indexer implements toolscache.Indexer for a view. The objects that it returns are shared, and read-only.
type indexer struct{ view *view }

// errReadOnly is the error of writes: the store has what the server has.
var errReadOnly = errors.New("the store belongs to a cache: it has what the server has, and takes no writes")

// Add is an error, as all writes.
func (indexer) Add(any) error { return errReadOnly }

// Update is an error.
func (indexer) Update(any) error { return errReadOnly }

// Delete is an error.
func (indexer) Delete(any) error { return errReadOnly }

// Replace is an error.
func (indexer) Replace([]any, string) error { return errReadOnly }

// Resync does nothing, as with client-go.
func (indexer) Resync() error { return nil }

// Bookmark does nothing: the informer notes the versions of its store.
func (indexer) Bookmark(string) {}

// LastStoreSyncResourceVersion is LastSyncResourceVersion of the informer.
func (x indexer) LastStoreSyncResourceVersion() string { return x.view.LastSyncResourceVersion() }

// List decodes all objects.
func (x indexer) List() []any { return x.objects(x.all()) }

// ListKeys returns all keys, without decoding an object.
func (x indexer) ListKeys() []string { return keysOf(x.all()) }

// all returns the items of all parts.
func (x indexer) all() iter.Seq2[object.Key, cache.Item[object.Object]] {
	return x.each(func(p *part) iter.Seq2[object.Key, cache.Item[object.Object]] { return p.informer.Snapshot().All() })
}

// each joins what the parts of the store have.
func (x indexer) each(of func(*part) iter.Seq2[object.Key, cache.Item[object.Object]]) iter.Seq2[object.Key, cache.Item[object.Object]] {
	return func(yield func(object.Key, cache.Item[object.Object]) bool) {
		for _, p := range x.view.store.parts {
			for key, item := range of(p) {
				if !yield(key, item) {
					return
				}
			}
		}
	}
}

// Get returns the stored object with the key of o.
func (x indexer) Get(o any) (item any, exists bool, err error) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return nil, false, toolscache.KeyError{Obj: o, Err: err}
	}
	return x.GetByKey(key)
}

// GetByKey returns an object by "namespace/name", or "name" for one outside of namespaces.
func (x indexer) GetByKey(key string) (item any, exists bool, err error) {
	namespace, name, err := toolscache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, false, nil //nolint:nilerr // no object has such a key, which is no error in client-go
	}
	p := x.view.store.partOf(namespace)
	if p == nil {
		return nil, false, nil
	}
	found := p.informer.Snapshot().Get(object.Key{Namespace: namespace, Name: name})
	if !found.Exists() {
		return nil, false, nil
	}
	o, err := x.view.read(found)
	if err != nil {
		return nil, true, err
	}
	return o, true, nil
}

// GetIndexers returns the functions of the indexes.
func (x indexer) GetIndexers() toolscache.Indexers {
	x.view.mu.Lock()
	defer x.view.mu.Unlock()
	indexers := toolscache.Indexers{}
	for name, of := range x.view.indexes {
		indexers[name] = of.values
	}
	return indexers
}

// AddIndexers adds indexes to the view.
func (x indexer) AddIndexers(indexers toolscache.Indexers) error { return x.view.AddIndexers(indexers) }

// Index returns the objects that share a value of an index with o.
func (x indexer) Index(name string, o any) ([]any, error) {
	of, err := x.view.index(name)
	if err != nil {
		return nil, err
	}
	values, err := of.values(o)
	if err != nil {
		return nil, err
	}
	unique := map[object.Key]cache.Item[object.Object]{}
	for _, value := range values {
		maps.Insert(unique, x.under(of, value))
	}
	return x.objects(maps.All(unique)), nil
}

// ByIndex returns the objects under a value of an index.
func (x indexer) ByIndex(name, value string) ([]any, error) {
	of, err := x.view.index(name)
	if err != nil {
		return nil, err
	}
	return x.objects(x.under(of, value)), nil
}

// IndexKeys returns the keys of the objects under a value of an index, sorted, without decoding one.
func (x indexer) IndexKeys(name, value string) ([]string, error) {
	of, err := x.view.index(name)
	if err != nil {
		return nil, err
	}
	keys := keysOf(x.under(of, value))
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values that have objects, and none for an index that there is not.
func (x indexer) ListIndexFuncValues(name string) []string {
	of, err := x.view.index(name)
	if err != nil {
		return []string{}
	}
	unique := map[string]bool{}
	for _, p := range x.view.store.parts {
		of.addValues(unique, p)
	}
	return slices.AppendSeq(make([]string, 0, len(unique)), maps.Keys(unique)) // not nil, as in client-go
}

// under returns what an index has under a value, of all parts.
func (x indexer) under(of *index, value string) iter.Seq2[object.Key, cache.Item[object.Object]] {
	return x.each(func(p *part) iter.Seq2[object.Key, cache.Item[object.Object]] {
		return of.in(p, value)
	})
}

func keysOf(items iter.Seq2[object.Key, cache.Item[object.Object]]) []string {
	keys := []string{}
	for key := range items {
		keys = append(keys, key.String())
	}
	return keys
}

// objects decodes items. An object that cannot be decoded is left out, and the log names it: the methods of
// client-go's stores have no error for it.
func (x indexer) objects(items iter.Seq2[object.Key, cache.Item[object.Object]]) []any {
	list := []any{}
	for key, item := range items {
		o, err := x.view.read(item)
		if err != nil {
			x.view.kind.cache.log.Error(err, "a list leaves out an object that cannot be decoded",
				"kind", fmt.Sprint(x.view.kind.gvk), "object", key.String())
			continue
		}
		list = append(list, o)
	}
	return list
}
