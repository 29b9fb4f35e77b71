// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	iradix "github.com/hashicorp/go-immutable-radix/v2"

	"github.com/setpoint-io/setpoint/object"
)

// state is one version of the store. It never changes; its trees share what they
// have in common with the versions before.
type state struct {
	version object.Version
	objects *iradix.Tree[*entry]
	indexes map[string]*iradix.Tree[*entry] // by name; path: value, 0, path of the object
}

// indexFunc returns the values under which an entry is found. An error is
// reported by who calls the store, and the entry stands in no value of the index.
type indexFunc func(*entry) ([]string, error)

// store holds the newest state. Reading it takes no lock; writers exclude each
// other.
type store struct {
	current atomic.Pointer[state]
	report  func(error) // of index functions that fail

	mu    sync.Mutex // held by writers
	funcs map[string]indexFunc
}

func newStore(report func(error)) *store {
	s := &store{report: report, funcs: map[string]indexFunc{}}
	s.current.Store(&state{objects: iradix.New[*entry](), indexes: map[string]*iradix.Tree[*entry]{}})
	return s
}

// addIndex adds an index, over the objects that are there already too.
func (s *store) addIndex(name string, f indexFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.funcs[name]; taken {
		return fmt.Errorf("adding index %q: there is one of that name", name)
	}
	s.funcs[name] = f
	old := s.current.Load()
	tree := iradix.New[*entry]().Txn()
	for it, ok := old.objects.Root().Iterator(), true; ok; {
		var e *entry
		if _, e, ok = it.Next(); ok {
			for _, value := range s.values(name, f, e) {
				tree.Insert(indexPath(value, e.meta.Key), e)
			}
		}
	}
	indexes := maps.Clone(old.indexes)
	indexes[name] = tree.Commit()
	s.current.Store(&state{version: old.version, objects: old.objects, indexes: indexes})
	return nil
}

// values calls an index function. One that panics is an error like any other:
// the writer must go on.
func (s *store) values(name string, f indexFunc, e *entry) (values []string) {
	defer func() {
		if p := recover(); p != nil {
			s.report(fmt.Errorf("index %q of %s: panic: %v", name, e.meta.Key, p))
			values = nil
		}
	}()
	values, err := f(e)
	if err == nil {
		for _, value := range values {
			if strings.IndexByte(value, 0) >= 0 {
				err = fmt.Errorf("value %q holds a zero byte", value)
			}
		}
	}
	if err != nil {
		s.report(fmt.Errorf("index %q of %s: %w", name, e.meta.Key, err))
		return nil
	}
	return values
}

func indexPath(value string, key object.Key) []byte {
	b := make([]byte, 0, len(value)+2+len(key.Namespace)+len(key.Name))
	b = append(b, value...)
	b = append(b, 0)
	b = append(b, key.Namespace...)
	b = append(b, '/')
	return append(b, key.Name...)
}

// edit is a change of the store in the making. The store's lock is held from
// begin to commit.
type edit struct {
	store   *store
	version object.Version
	objects *iradix.Txn[*entry]
	indexes map[string]*iradix.Txn[*entry]
}

func (s *store) begin() *edit {
	s.mu.Lock()
	now := s.current.Load()
	e := &edit{store: s, version: now.version, objects: now.objects.Txn(), indexes: make(map[string]*iradix.Txn[*entry], len(s.funcs))}
	for name, tree := range now.indexes {
		e.indexes[name] = tree.Txn()
	}
	return e
}

// commit publishes the change at a version; a version never moves back.
func (e *edit) commit(version object.Version) {
	if !version.AtLeast(e.version) {
		version = e.version
	}
	indexes := make(map[string]*iradix.Tree[*entry], len(e.indexes))
	for name, txn := range e.indexes {
		indexes[name] = txn.Commit()
	}
	e.store.current.Store(&state{version: version, objects: e.objects.Commit(), indexes: indexes})
	e.store.mu.Unlock()
}

// put stores an entry and returns the one that it replaces.
func (e *edit) put(n *entry) (old *entry) {
	old, _ = e.objects.Insert(path(n.meta.Key), n)
	for name, f := range e.store.funcs {
		if old != nil {
			for _, value := range e.store.values(name, f, old) {
				e.indexes[name].Delete(indexPath(value, n.meta.Key))
			}
		}
		for _, value := range e.store.values(name, f, n) {
			e.indexes[name].Insert(indexPath(value, n.meta.Key), n)
		}
	}
	return old
}

// remove takes an entry out and returns it.
func (e *edit) remove(key object.Key) (old *entry) {
	old, _ = e.objects.Delete(path(key))
	if old == nil {
		return nil
	}
	for name, f := range e.store.funcs {
		for _, value := range e.store.values(name, f, old) {
			e.indexes[name].Delete(indexPath(value, key))
		}
	}
	return old
}

// get returns an entry of the newest state.
func (s *state) get(key object.Key) *entry {
	e, _ := s.objects.Get(path(key))
	return e
}

// walk calls each for all entries of a tree under a prefix, in order of their
// paths, until it returns false.
func walk(tree *iradix.Tree[*entry], prefix []byte, each func(*entry) bool) {
	it := tree.Root().Iterator()
	it.SeekPrefix(prefix)
	for p, e, ok := it.Next(); ok && bytes.HasPrefix(p, prefix); p, e, ok = it.Next() {
		if !each(e) {
			return
		}
	}
}
