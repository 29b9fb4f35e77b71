// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	operators "k8s.io/apimachinery/pkg/selection"
)

// labelIndexes find objects by the value of a label, for selectors that are used again and again.
//
// A selector is compared with each object, which takes some 60 ns: the objects, their families and
// the labels are at three places in memory. Of 20,000 Pods the ten of one ReplicaSet are found in
// more than a millisecond that way, and in microseconds by an index.
//
// Readers make the index of a label, and bring it up to the state that they read, by what has
// changed since the state that it is of. So the writer has no work with it, and a program that does
// not select by labels has none of the memory: about 21 bytes for each object that has the label. An
// index that was not used for a while is dropped, since it keeps the state alive that it is of.
type labelIndexes struct {
	mu      sync.Mutex
	byKey   map[string]*labelIndex
	walked  map[string]int // how many objects were compared, since the last sweep, for want of the index
	idle    *time.Timer    // calls sweep; nil: nothing is to be dropped
	stopped bool
}

// labelIndex is the index of one label.
type labelIndex struct {
	state  *state // that it is of
	values groups
	edits  uint64
	used   bool // since the last sweep
}

const (
	labelIndexFrom  = 1024             // objects; fewer are compared as quickly
	labelIndexAfter = 4                // so many times all objects are compared before there is an index
	labelIndexGain  = 4                // an index that leaves more than one of so many is not used
	labelIndexMost  = 4                // indexes of an informer
	labelIndexIdle  = 10 * time.Second // after once to twice this time without use an index is dropped
)

// selected calls each for every entry of a namespace, or of all if it is empty, that a selector
// matches, until it returns false.
func (s *state) selected(namespace string, selector labels.Selector, each func(*entry) bool) {
	matching := func(e *entry) bool { return !e.selectedBy(selector) || each(e) }
	sets, ok := s.labels.candidates(s, namespace, selector)
	if !ok {
		s.within(namespace, matching)
		return
	}
	for _, set := range sets {
		more := set.all(func(e *entry) bool {
			return namespace != "" && e.family.namespace != namespace || matching(e)
		})
		if !more {
			return
		}
	}
}

// candidates returns sets of entries, of which no entry is in two, that have all entries which a
// selector matches. It reports false if it is as well to compare all entries of the namespace.
func (x *labelIndexes) candidates(s *state, namespace string, selector labels.Selector) (sets []trie[*entry], ok bool) {
	walk := s.lenWithin(namespace)
	if x == nil || walk < labelIndexFrom {
		return nil, false
	}
	requirements, _ := selector.Requirements()
	// While another reader makes an index, which may take long, this one compares.
	if !x.mu.TryLock() {
		return nil, false
	}
	defer x.mu.Unlock()
	most := walk / labelIndexGain
	var wanted *labels.Requirement
	for i := range requirements {
		r := &requirements[i]
		if !namesValues(r) {
			continue
		}
		index := x.byKey[r.Key()]
		if index == nil {
			if wanted == nil {
				wanted = r
			}
			continue
		}
		if found, n := index.having(s, r); n <= most {
			sets, most, ok = found, n, true
		}
	}
	if ok || wanted == nil || !x.want(s, wanted.Key(), walk) {
		return sets, ok
	}
	found, n := x.byKey[wanted.Key()].having(s, wanted)
	return found, n <= most
}

// namesValues reports whether a requirement names the values that a label may have.
func namesValues(r *labels.Requirement) bool {
	switch r.Operator() { //nolint:exhaustive // the others name none
	case operators.Equals, operators.DoubleEquals, operators.In:
		return true
	}
	return false
}

// want counts objects that were compared because there is no index of a label, and makes the index
// if they were many.
func (x *labelIndexes) want(s *state, key string, compared int) bool {
	if x.stopped || len(x.byKey) == labelIndexMost {
		return false
	}
	if x.walked == nil {
		x.walked, x.byKey = map[string]int{}, map[string]*labelIndex{}
	}
	if x.idle == nil {
		x.idle = time.AfterFunc(labelIndexIdle, x.sweep)
	}
	x.walked[key] += compared
	if x.walked[key] < labelIndexAfter*s.len {
		return false
	}
	x.byKey[key] = &labelIndex{state: new(state)}
	x.byKey[key].moveTo(s, key)
	return true
}

// having returns the entries of a state that have one of the values of a requirement, and how many.
func (x *labelIndex) having(s *state, r *labels.Requirement) (sets []trie[*entry], n int) {
	x.moveTo(s, r.Key())
	x.used = true
	values := r.ValuesUnsorted()
	for i, value := range values {
		if slices.Contains(values[:i], value) {
			continue // API servers allow a value to stand there twice
		}
		set := x.values.find(value)
		sets, n = append(sets, set), n+set.len
	}
	return sets, n
}

// moveTo makes it the index of a state, which may be a newer or an older one.
func (x *labelIndex) moveTo(s *state, key string) {
	if x.state == s {
		return
	}
	x.edits++
	s.since(x.state, func(was, is *entry) bool {
		value, has := is.label(key)
		if before, had := was.label(key); had && (!has || before != value) {
			namespace, name := was.names()
			x.values.drop(x.edits, before, namespace, name)
		}
		if has {
			x.values.add(x.edits, value, is)
		}
		return true
	})
	x.state = s
}

// selectedBy reports whether a selector matches the labels. The selector gets a pointer to them,
// because to put the labels themselves into an interface would allocate 16 bytes for each object.
func (e *entry) selectedBy(selector labels.Selector) bool { return selector.Matches(&e.family.labels) }

// label returns the value of a label. A nil entry has none.
func (e *entry) label(key string) (value string, has bool) {
	if e == nil {
		return "", false
	}
	return e.family.labels.Lookup(key)
}

// sweep drops the indexes that were not used since the last sweep.
func (x *labelIndexes) sweep() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped {
		return
	}
	for key, index := range x.byKey {
		if !index.used {
			delete(x.byKey, key)
		}
		index.used = false
	}
	clear(x.walked)
	if x.idle = nil; len(x.byKey) > 0 {
		x.idle = time.AfterFunc(labelIndexIdle, x.sweep)
	}
}

// stop drops all indexes for good.
func (x *labelIndexes) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stopped, x.byKey, x.walked = true, nil, nil
	if x.idle != nil {
		x.idle.Stop()
	}
}
