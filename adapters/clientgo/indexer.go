// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/internal/decode"
	setpoint "github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/object"
)

// indexer implements cache.Indexer on the store of an informer.
//
// Before the informer reads, it is an indexer of client-go, which callers may write to: unit tests
// put objects there for listers. From then on it has what the server has, and writes are refused.
type indexer struct {
	informer *Informer
	seed     cache.Indexer
	indexes  atomic.Pointer[map[string]index]
	adding   sync.Mutex // of indexes
}

// index is one of the indexes, by its name.
type index struct {
	name   string
	values cache.IndexFunc
	// byNamespace is set for the index that every generated informer has. The store finds the
	// objects of a namespace without it, and without decoding one.
	byNamespace bool
	found       setpoint.Index[object.Object]
}

func newIndexer(i *Informer, indexers cache.Indexers) *indexer {
	own := cache.Indexers{} // client-go's indexer writes into the map, which must not be nil
	maps.Copy(own, indexers)
	x := &indexer{informer: i, seed: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, own)}
	indexes := map[string]index{}
	for name, values := range indexers {
		indexes[name] = newIndex(name, values)
	}
	x.indexes.Store(&indexes)
	return x
}

func newIndex(name string, values cache.IndexFunc) index {
	// Functions cannot be compared, but the code that they run can.
	byNamespace := reflect.ValueOf(values).Pointer() == reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()
	return index{name: name, values: values, byNamespace: byNamespace}
}

// on adds the index to an informer of the cache.
func (n index) on(informer setpoint.SharedInformer[object.Object]) index {
	if n.byNamespace {
		return n
	}
	values, holder := n.values, decode.HolderOfIndex(n.name)
	n.found = setpoint.NewIndex(informer, func(item setpoint.Item[object.Object]) ([]string, error) {
		o, err := item.Object()
		if err != nil {
			return nil, err
		}
		item.GivenTo(holder)
		return values(o)
	})
	return n
}

// begin replaces what callers have written by the store of the informer.
func (x *indexer) begin(informer setpoint.SharedInformer[object.Object]) {
	x.adding.Lock()
	defer x.adding.Unlock()
	indexes := map[string]index{}
	for name, n := range *x.indexes.Load() {
		indexes[name] = n.on(informer)
	}
	x.indexes.Store(&indexes)
}

// add adds indexes; informer is nil before the informer reads.
func (x *indexer) add(indexers cache.Indexers, informer *setpoint.SharedInformer[object.Object]) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	before := *x.indexes.Load()
	for name := range indexers {
		if _, known := before[name]; known {
			return fmt.Errorf("indexer conflict: there is an index %q already", name)
		}
	}
	if informer == nil {
		if err := x.seed.AddIndexers(indexers); err != nil {
			return err
		}
	}
	after := maps.Clone(before)
	for name, values := range indexers {
		after[name] = newIndex(name, values)
		if informer != nil {
			after[name] = after[name].on(*informer)
		}
	}
	x.indexes.Store(&after)
	return nil
}

// snapshot returns the newest state. ok is false before the informer reads.
func (x *indexer) snapshot() (s setpoint.Snapshot[object.Object], ok bool) {
	informer := x.informer.current.Load()
	if informer == nil {
		return s, false
	}
	return informer.Snapshot(), true
}

// errOwned is the error of writes to the store of an informer that runs.
var errOwned = errors.New("the store belongs to a running informer: it has what the server has, and takes no writes")

// Add stores an object for a test, before the informer runs.
func (x *indexer) Add(o any) error { return x.write(func(s cache.Indexer) error { return s.Add(o) }) }

// Update is as Add.
func (x *indexer) Update(o any) error {
	return x.write(func(s cache.Indexer) error { return s.Update(o) })
}

// Delete removes an object of a test, before the informer runs.
func (x *indexer) Delete(o any) error {
	return x.write(func(s cache.Indexer) error { return s.Delete(o) })
}

// Replace replaces the objects of a test, before the informer runs.
func (x *indexer) Replace(objects []any, version string) error {
	return x.write(func(s cache.Indexer) error { return s.Replace(objects, version) })
}

func (x *indexer) write(change func(cache.Indexer) error) error {
	if _, reads := x.snapshot(); reads {
		return errOwned
	}
	return change(x.seed)
}

// Resync does nothing, as with client-go.
func (x *indexer) Resync() error { return nil }

// Bookmark does nothing: the informer notes the versions of its store.
func (x *indexer) Bookmark(version string) {
	if _, reads := x.snapshot(); !reads {
		x.seed.Bookmark(version)
	}
}

// LastStoreSyncResourceVersion returns the version of the newest state.
func (x *indexer) LastStoreSyncResourceVersion() string {
	if s, ok := x.snapshot(); ok {
		return string(s.Version())
	}
	return x.seed.LastStoreSyncResourceVersion()
}

// List decodes all objects.
func (x *indexer) List() []any {
	s, ok := x.snapshot()
	if !ok {
		return x.seed.List()
	}
	return x.objects(s.Len(), s.All())
}

// ListKeys returns all keys, without decoding an object.
func (x *indexer) ListKeys() []string {
	s, ok := x.snapshot()
	if !ok {
		return x.seed.ListKeys()
	}
	keys := make([]string, 0, s.Len())
	for key := range s.All() {
		keys = append(keys, key.String())
	}
	return keys
}

// Get returns the stored object with the key of o.
func (x *indexer) Get(o any) (item any, exists bool, err error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return nil, false, cache.KeyError{Obj: o, Err: err}
	}
	return x.GetByKey(key)
}

// GetByKey returns an object by "namespace/name", or "name" for one outside of namespaces.
func (x *indexer) GetByKey(key string) (item any, exists bool, err error) {
	s, ok := x.snapshot()
	if !ok {
		return x.seed.GetByKey(key)
	}
	namespace, name, within := strings.Cut(key, "/")
	if !within {
		namespace, name = "", key
	}
	found := s.Get(object.Key{Namespace: namespace, Name: name})
	if !found.Exists() {
		return nil, false, nil
	}
	o, err := found.Object()
	if err != nil {
		return nil, true, err
	}
	return o, true, nil
}

// GetIndexers returns the functions of the indexes.
func (x *indexer) GetIndexers() cache.Indexers {
	indexers := cache.Indexers{}
	for name, n := range *x.indexes.Load() {
		indexers[name] = n.values
	}
	return indexers
}

// AddIndexers is [Informer.AddIndexers].
func (x *indexer) AddIndexers(indexers cache.Indexers) error { return x.informer.AddIndexers(indexers) }

// Index returns the objects that share a value of an index with o.
func (x *indexer) Index(name string, o any) ([]any, error) {
	s, n, err := x.find(name)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return x.seed.Index(name, o)
	}
	values, err := n.values(o)
	if err != nil {
		return nil, err
	}
	if len(values) == 1 {
		return x.objects(0, n.in(*s, values[0])), nil
	}
	unique := map[object.Key]setpoint.Item[object.Object]{}
	for _, value := range values {
		maps.Insert(unique, n.in(*s, value))
	}
	return x.objects(len(unique), maps.All(unique)), nil
}

// ByIndex returns the objects under a value of an index.
func (x *indexer) ByIndex(name, value string) ([]any, error) {
	s, n, err := x.find(name)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return x.seed.ByIndex(name, value)
	}
	return x.objects(0, n.in(*s, value)), nil
}

// IndexKeys returns the keys of the objects under a value of an index, sorted, without decoding one.
func (x *indexer) IndexKeys(name, value string) ([]string, error) {
	s, n, err := x.find(name)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return x.seed.IndexKeys(name, value)
	}
	keys := []string{} // not nil, as in client-go
	for key := range n.in(*s, value) {
		keys = append(keys, key.String())
	}
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values that have objects, and none for an index that there is not.
func (x *indexer) ListIndexFuncValues(name string) []string {
	s, n, err := x.find(name)
	if err != nil {
		return []string{}
	}
	if s == nil {
		return x.seed.ListIndexFuncValues(name)
	}
	unique := map[string]struct{}{}
	if n.byNamespace {
		for key := range s.All() {
			unique[key.Namespace] = struct{}{}
		}
	} else {
		for value := range n.found.Values(*s) {
			unique[value] = struct{}{}
		}
	}
	return slices.AppendSeq(make([]string, 0, len(unique)), maps.Keys(unique)) // not nil, as in client-go
}

// find returns an index, and the newest state; nil before the informer reads.
func (x *indexer) find(name string) (*setpoint.Snapshot[object.Object], index, error) {
	_, reads := x.snapshot()
	n, ok := (*x.indexes.Load())[name]
	if !ok {
		return nil, n, fmt.Errorf("Index with name %s does not exist", name)
	}
	if !reads {
		return nil, n, nil
	}
	s, _ := x.snapshot() // after the index was found: an older snapshot does not have it
	return &s, n, nil
}

// in returns the objects under a value.
func (n index) in(s setpoint.Snapshot[object.Object], value string) iter.Seq2[object.Key, setpoint.Item[object.Object]] {
	if n.byNamespace {
		return s.Namespace(value)
	}
	return n.found.In(s, value)
}

// objects decodes items. An object that cannot be decoded is left out and reported: the methods of
// client-go's stores have no error for it.
func (x *indexer) objects(size int, items iter.Seq2[object.Key, setpoint.Item[object.Object]]) []any {
	all := make([]setpoint.Item[object.Object], 0, size)
	for _, item := range items {
		all = append(all, item)
	}
	decoded, err := setpoint.ObjectsOf(all)
	if err != nil {
		return x.decodable(all)
	}
	list := make([]any, len(decoded))
	for i, o := range decoded {
		list[i] = o
	}
	return list
}

// decodable returns the objects that can be decoded.
func (x *indexer) decodable(items []setpoint.Item[object.Object]) []any {
	list := make([]any, 0, len(items))
	for _, item := range items {
		o, err := item.Object()
		if err != nil {
			utilruntime.HandleErrorWithLogger(x.informer.logger(), err, "A list leaves out an object that cannot be decoded", "object", item.Key().String())
			continue
		}
		list = append(list, o)
	}
	return list
}
