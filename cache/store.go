// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/object"
)

// state is one version of the store. It never changes, and shares with older versions the
// parts that are the same.
type state struct {
	version object.Version
	// complete is the version up to which no change can be missing: see Snapshot.Complete.
	complete object.Version
	len      int
	spaces   groups      // by namespace: where the objects are
	orphans  groups      // by namespace, see orphans.go
	indexes  []groups    // by value
	numbers  map[any]int // of the indexes that users add, by their identity
	labels   *labelIndexes
}

// group is the objects of one namespace, or of one value in an index.
type group struct {
	owner   uint64 // the edit that may still change it
	value   string
	members trie[*entry]
}

//nolint:unparam // the names of the elements of a trie have two parts
func (g *group) names() (value, _ []byte) { return bytesOf(g.value), nil }

func (g *group) called(value, _ []byte) bool { return g.value == string(value) }
func (g *group) hash() uint64                { return maphash.String(seed, g.value) }

// groups finds groups by their value.
type groups struct{ trie[*group] }

// group returns the group of a value, if there is one.
func (t groups) group(value string) (*group, bool) {
	return t.get(maphash.String(seed, value), bytesOf(value), nil)
}

func (t groups) find(value string) trie[*entry] {
	if g, ok := t.group(value); ok {
		return g.members
	}
	return trie[*entry]{}
}

// own returns the group of a value that the edit may change. It creates the group, or copies
// it if an older state shares it.
func (t *groups) own(edit uint64, value string) *group {
	g, ok := t.group(value)
	if ok && g.owner == edit {
		return g
	}
	mine := &group{owner: edit, value: value}
	if ok {
		mine.value, mine.members = g.value, g.members
	}
	t.trie.put(edit, mine, bytesOf(value), nil)
	return mine
}

func (t *groups) add(edit uint64, value string, e *entry) (old *entry) {
	old, _ = t.own(edit, value).members.put(edit, e, bytesOf(e.family.namespace), bytesOf(e.nameText()))
	return old
}

// drop removes an entry from the group of a value, and a group that has no other.
func (t *groups) drop(edit uint64, value string, namespace, name []byte) (old *entry) {
	old, left := t.take(edit, value, namespace, name)
	if old != nil && left == 0 {
		t.forget(edit, value)
	}
	return old
}

// take removes an entry from the group of a value, and returns how many are left.
func (t *groups) take(edit uint64, value string, namespace, name []byte) (old *entry, left int) {
	g, ok := t.group(value)
	if !ok {
		return nil, 0
	}
	hash := hashOf(namespace, name)
	if _, ok := g.members.get(hash, namespace, name); !ok {
		return nil, 0
	}
	g = t.own(edit, value)
	old, _ = g.members.remove(edit, hash, namespace, name)
	return old, g.members.len
}

// has reports whether there is a group of a value.
func (t groups) has(value string) bool {
	_, ok := t.group(value)
	return ok
}

// forget removes the group of a value.
func (t *groups) forget(edit uint64, value string) {
	t.remove(edit, maphash.String(seed, value), bytesOf(value), nil)
}

// get returns an entry of the state.
func (s *state) get(namespace, name []byte) *entry {
	of := maphash.Bytes(seed, namespace)
	g, ok := s.spaces.get(of, namespace, nil)
	if !ok {
		return nil
	}
	e, _ := g.members.get(hashWithin(of, name), namespace, name)
	return e
}

func (s *state) at(key object.Key) *entry { return s.get(bytesOf(key.Namespace), bytesOf(key.Name)) }

// all calls each for every entry until it returns false.
func (s *state) all(each func(*entry) bool) {
	s.spaces.all(func(g *group) bool { return g.members.all(each) })
}

// within calls each for every entry of a namespace, or for all if it is empty, until it returns false.
func (s *state) within(namespace string, each func(*entry) bool) {
	if namespace == "" {
		s.all(each)
		return
	}
	s.spaces.find(namespace).all(each)
}

// lenWithin returns the number of entries of a namespace, or of all if it is empty.
func (s *state) lenWithin(namespace string) int {
	if namespace == "" {
		return s.len
	}
	return s.spaces.find(namespace).len
}

// since calls each for every entry that is not the same in another state, until it
// returns false: as it was and as it is, one of which may be nil.
func (s *state) since(before *state, each func(was, is *entry) bool) {
	s.spaces.since(before.spaces.trie, func(was, is *group) bool {
		var membersWere, members trie[*entry]
		if was != nil {
			membersWere = was.members
		}
		if is != nil {
			members = is.members
		}
		return members.since(membersWere, each)
	})
}

// relations is the index that every store has. Its values are the UIDs of an object's owners.
const relations = 0

func (f *family) relate() {
	for i := range f.owners {
		if uid := string(f.owners[i].UID); !slices.Contains(f.relations, uid) {
			f.relations = append(f.relations, uid)
		}
	}
	f.controlled = object.ControllerOf(f.owners) != nil
	f.relations = slices.Clip(f.relations)
}

// indexFunc returns the values under which an entry is found. The store reports an error, and
// the entry then has no value in the index.
type indexFunc func(*entry) ([]string, error)

// placement is a value of an entry in an index that a user added. It is stored, since the
// index function may have to decode the object.
type placement struct {
	index int
	value string
}

// store holds the newest state. Reading it takes no lock; writers exclude each
// other.
type store struct {
	current atomic.Pointer[state]
	report  func(error) // of index functions that fail

	mu    sync.Mutex // held by writers
	edits uint64
	added []*addedIndex // by number; nil for relations, and for those that were removed
}

// addedIndex is an index that a user added. A store and its successor share it.
type addedIndex struct {
	values  indexFunc
	removed bool // guarded by the store's mu; the predecessor's, while a successor takes over
}

func newStore(report func(error)) *store {
	s := &store{report: report, added: []*addedIndex{nil}}
	s.current.Store(&state{indexes: make([]groups, 1), labels: new(labelIndexes)})
	return s
}

// addIndex adds an index, which has all objects of the store, unless there is one of that
// identity.
func (s *store) addIndex(id any, x *addedIndex) {
	edit := s.begin()
	if _, there := edit.numbers[id]; there {
		edit.abandon()
		return
	}
	number := relations + 1
	for number < len(s.added) && s.added[number] != nil {
		number++
	}
	if number == len(s.added) {
		s.added = append(s.added, nil)
		edit.indexes = append(edit.indexes, groups{})
	}
	s.added[number] = x
	edit.numbers = maps.Clone(edit.numbers)
	if edit.numbers == nil {
		edit.numbers = map[any]int{}
	}
	edit.numbers[id] = number
	s.current.Load().all(func(e *entry) bool {
		for _, value := range s.values(x.values, e) {
			edit.place(e, placement{number, value})
		}
		return true
	})
	edit.commit(edit.version)
}

// removeIndex removes the index of an identity, if there is one. Its number is free for another one.
func (s *store) removeIndex(id any) {
	edit := s.begin()
	number, there := edit.numbers[id]
	if !there {
		edit.abandon()
		return
	}
	s.added[number].removed = true
	s.added[number] = nil
	edit.numbers = maps.Clone(edit.numbers)
	delete(edit.numbers, id)
	edit.indexes[number] = groups{}
	edit.all(func(e *entry) bool {
		if e.index == nil {
			return true
		}
		*e.index = slices.DeleteFunc(*e.index, func(p placement) bool { return p.index == number })
		if len(*e.index) == 0 {
			e.index = nil
		}
		return true
	})
	edit.commit(edit.version)
}

// values calls an index function. A panic is an error like any other, since the informer must
// go on.
func (s *store) values(f indexFunc, e *entry) (values []string) {
	defer func() {
		if p := recover(); p != nil {
			s.report(fmt.Errorf("indexing %s: panic: %v", e.key(), p))
			values = nil
		}
	}()
	values, err := f(e)
	if err != nil {
		s.report(fmt.Errorf("indexing %s: %w", e.key(), err))
		return nil
	}
	return values
}

// edit is a change of the store before its commit. The store's lock is held from begin to
// commit or abandon.
type edit struct {
	state
	store *store
	id    uint64

	rewritten []rewriting // in their order
}

// rewriting is an entry that takes the place of another one, as the same state in another form.
type rewriting struct{ was, is *entry }

func (s *store) begin() *edit {
	s.mu.Lock()
	s.edits++
	e := &edit{state: *s.current.Load(), store: s, id: s.edits}
	e.indexes = slices.Clone(e.indexes)
	return e
}

// stage returns a change of an empty store, for a state that is not whole yet. It holds no lock, is never committed, and has no
// indexes of users.
func (s *store) stage() *edit {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edits++
	return &edit{state: state{indexes: make([]groups, relations+1)}, store: s, id: s.edits}
}

// adopt takes over a staged state, and its right to change it, if the store is empty. To put each of its entries once more was a sixth of
// the CPU of a first list. Where adopt returns false, the entries are to be put.
func (e *edit) adopt(staged *edit) bool {
	if e.len > 0 {
		return false
	}
	e.id, e.len, e.spaces, e.orphans, e.indexes[relations] = staged.id, staged.len, staged.spaces, staged.orphans, staged.indexes[relations]
	if len(e.numbers) > 0 {
		e.all(func(n *entry) bool {
			e.placeAll(n)
			return true
		})
	}
	return true
}

// to sets the version at which the state is complete. It may be an older one.
func (e *edit) to(version object.Version) { e.version, e.complete = version, version }

// commit publishes the change at a version. An older version changes nothing. More changes may
// follow at that version, and none at the one before it.
func (e *edit) commit(version object.Version) {
	e.reach(version)
	next := e.state
	e.store.current.Store(&next)
	e.store.mu.Unlock()
	for _, r := range e.rewritten {
		r.is.share(r.was)
	}
}

// reach moves the change to a version, unless that is an older one.
func (e *edit) reach(version object.Version) {
	if version.Compare(e.version) > 0 {
		e.version, e.complete = version, e.version
	}
}

func (e *edit) abandon() { e.store.mu.Unlock() }

// put stores an entry and returns the one that it replaces.
func (e *edit) put(n *entry) (old *entry) {
	if old = e.spaces.add(e.id, n.family.namespace, n); old == nil {
		e.len++
	}
	if old != nil && old.family != n.family {
		e.unrelate(old, n.family.relations)
	}
	for _, value := range n.family.relations {
		e.indexes[relations].add(e.id, value, n)
	}
	e.adopted(old, n)
	if len(e.numbers) == 0 {
		return old
	}
	if old != nil {
		e.displace(old)
	}
	e.placeAll(n)
	return old
}

// placeAll puts an entry into the indexes that users added.
func (e *edit) placeAll(n *entry) {
	for number, x := range e.store.added {
		if x == nil {
			continue
		}
		for _, value := range e.store.values(x.values, n) {
			e.place(n, placement{number, value})
		}
	}
}

// rewrite replaces an entry by another one of the same state of the same object.
func (e *edit) rewrite(old, n *entry) {
	e.spaces.add(e.id, n.family.namespace, n)
	for _, value := range n.family.relations {
		e.indexes[relations].add(e.id, value, n)
	}
	e.adopted(old, n)
	n.index = old.index
	for p := range n.placements {
		e.indexes[p.index].add(e.id, p.value, n)
	}
	e.rewritten = append(e.rewritten, rewriting{old, n})
}

// placements yields the entry's values in indexes that users added.
func (e *entry) placements(yield func(placement) bool) {
	if e.index == nil {
		return
	}
	for _, p := range *e.index {
		if !yield(p) {
			return
		}
	}
}

// remove takes an entry out and returns it.
func (e *edit) remove(namespace, name []byte) (old *entry) {
	old = e.spaces.drop(e.id, string(namespace), namespace, name)
	if old == nil {
		return nil
	}
	e.len--
	e.unrelate(old, nil)
	e.left(old)
	e.displace(old)
	return old
}

// unrelate removes an entry from its relations, without those in except.
func (e *edit) unrelate(old *entry, except []string) {
	for _, value := range old.family.relations {
		if !slices.Contains(except, value) {
			e.indexes[relations].drop(e.id, value, bytesOf(old.family.namespace), bytesOf(old.nameText()))
		}
	}
}

func (e *edit) place(n *entry, p placement) {
	g := e.indexes[p.index].own(e.id, p.value)
	g.members.put(e.id, n, bytesOf(n.family.namespace), bytesOf(n.nameText()))
	p.value = g.value // all entries share the text
	if n.index == nil {
		n.index = new([]placement) // most kinds have no such index
	}
	*n.index = append(*n.index, p)
}

func (e *edit) displace(old *entry) {
	for p := range old.placements {
		e.indexes[p.index].drop(e.id, p.value, bytesOf(old.family.namespace), bytesOf(old.nameText()))
	}
}
