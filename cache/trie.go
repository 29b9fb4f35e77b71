// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

// A trie is a persistent hash trie: a set of elements found by a name of two parts.
// A trie that has been published never changes; an edit copies the nodes on its way
// and shares all others, so that taking a snapshot costs nothing and readers take no
// lock.
//
// Branches have sixteen children, leaves up to leafMost elements with their hashes
// beside them. Measured against a radix tree of the whole paths, which the store had
// before: 20 instead of 400 bytes for each element, and a get that costs a hash and
// four or five steps for a million elements instead of one step for each fork in
// their names. What it gives up is an order of the elements.
type trie[T element] struct {
	root *trieNode[T]
	len  int
}

// element is what a trie holds: a pointer that knows its name.
type element interface {
	comparable
	names() (a, b []byte)
	called(a, b []byte) bool
	hash() uint64
}

type trieNode[T element] struct {
	owner uint64 // the edit that may still change the node
	kids  *[fanOut]*trieNode[T]
	slots []trieSlot[T] // of a leaf, in no order
}

type trieSlot[T element] struct {
	hash    uint64
	element T
}

const (
	fanOut   = 16
	fanBits  = 4
	leafMost = 32 // elements of a leaf; more make it a branch
	leafFew  = 8  // a branch with so few elements becomes a leaf
	leafRoom = 2  // elements that a leaf which is full gets room for
	hashBits = 64
)

// get returns the element of that name.
func (t trie[T]) get(hash uint64, a, b []byte) (element T, ok bool) { return t.root.get(0, hash, a, b) }

func (n *trieNode[T]) get(shift int, hash uint64, a, b []byte) (element T, ok bool) {
	for ; n != nil; shift += fanBits {
		if n.kids != nil {
			n = n.kids[(hash>>shift)%fanOut]
			continue
		}
		for i := range n.slots {
			if s := &n.slots[i]; s.hash == hash && s.element.called(a, b) {
				return s.element, true
			}
		}
		break
	}
	return element, false
}

// all calls each for every element until it returns false.
func (t trie[T]) all(each func(T) bool) bool { return t.root.all(each) }

func (n *trieNode[T]) all(each func(T) bool) bool {
	if n == nil {
		return true
	}
	if n.kids == nil {
		for i := range n.slots {
			if !each(n.slots[i].element) {
				return false
			}
		}
		return true
	}
	for _, kid := range n.kids {
		if !kid.all(each) {
			return false
		}
	}
	return true
}

// since calls each for every element that is not the same here and in another state of
// the trie, until it returns false: with the element of before and the one of now, one
// of which may be none. What both share is passed over whole, so that it costs as much
// as was changed.
func (t trie[T]) since(before trie[T], each func(was, is T) bool) bool {
	return t.root.since(before.root, 0, each)
}

func (n *trieNode[T]) since(before *trieNode[T], shift int, each func(was, is T) bool) bool {
	if n == before {
		return true
	}
	if n != nil && before != nil && n.kids != nil && before.kids != nil {
		for i, kid := range n.kids {
			if !kid.since(before.kids[i], shift+fanBits, each) {
				return false
			}
		}
		return true
	}
	// One of them is a leaf, and has few elements, or was one.
	var none T
	return n.all(func(is T) bool {
		was := before.sameAs(shift, is)
		return was == is || each(was, is)
	}) && before.all(func(was T) bool {
		return n.sameAs(shift, was) != none || each(was, none)
	})
}

// sameAs returns the element below n that has the name of another, or none.
func (n *trieNode[T]) sameAs(shift int, other T) T {
	a, b := other.names()
	element, _ := n.get(shift, other.hash(), a, b)
	return element
}

// put adds an element in place of the one with its name. owner is the edit that asks;
// nodes that it made itself are changed in place.
func (t *trie[T]) put(owner uint64, element T, a, b []byte) (old T, had bool) {
	hash := element.hash()
	t.root, old, had = t.root.put(owner, 0, trieSlot[T]{hash, element}, a, b)
	if !had {
		t.len++
	}
	return old, had
}

// own returns n, or a copy of it that owner may change.
func (n *trieNode[T]) own(owner uint64) *trieNode[T] {
	if n.owner == owner {
		return n
	}
	c := &trieNode[T]{owner: owner}
	if n.kids != nil {
		kids := *n.kids
		c.kids = &kids
	} else {
		// Room for the one element that is about to come, and no more: most
		// leaves are copied for one change and then kept for long.
		c.slots = append(make([]trieSlot[T], 0, len(n.slots)+1), n.slots...)
	}
	return c
}

func (n *trieNode[T]) put(owner uint64, shift int, s trieSlot[T], a, b []byte) (_ *trieNode[T], old T, had bool) {
	if n == nil {
		return &trieNode[T]{owner: owner, slots: []trieSlot[T]{s}}, old, false
	}
	n = n.own(owner)
	if n.kids != nil {
		kid := &n.kids[(s.hash>>shift)%fanOut]
		*kid, old, had = (*kid).put(owner, shift+fanBits, s, a, b)
		return n, old, had
	}
	for i := range n.slots {
		if at := &n.slots[i]; at.hash == s.hash && at.element.called(a, b) {
			old, *at = at.element, s
			return n, old, true
		}
	}
	if len(n.slots) < leafMost || shift >= hashBits {
		n.add(s)
		return n, old, false
	}
	n.kids = new([fanOut]*trieNode[T])
	for _, had := range n.slots {
		kid := &n.kids[(had.hash>>shift)%fanOut]
		if *kid == nil {
			*kid = &trieNode[T]{owner: owner}
		}
		(*kid).add(had)
	}
	n.slots = nil
	return n.put(owner, shift, s, a, b)
}

// add appends to a leaf. Most leaves grow once and stay as they are then, so they have less spare
// room than append gives.
func (n *trieNode[T]) add(s trieSlot[T]) {
	if len(n.slots) == cap(n.slots) {
		n.slots = append(make([]trieSlot[T], 0, len(n.slots)+leafRoom), n.slots...)
	}
	n.slots = append(n.slots, s)
}

// remove takes the element of that name out.
func (t *trie[T]) remove(owner, hash uint64, a, b []byte) (old T, had bool) {
	if old, had = t.get(hash, a, b); had {
		t.root = t.root.remove(owner, 0, hash, old)
		t.len--
	}
	return old, had
}

// remove takes out an element that is there.
func (n *trieNode[T]) remove(owner uint64, shift int, hash uint64, old T) *trieNode[T] {
	n = n.own(owner)
	if n.kids == nil {
		for i := range n.slots {
			if n.slots[i].element == old {
				last := len(n.slots) - 1
				n.slots[i] = n.slots[last]
				n.slots[last] = trieSlot[T]{}
				n.slots = n.slots[:last]
				break
			}
		}
		if len(n.slots) == 0 {
			return nil
		}
		return n
	}
	kid := &n.kids[(hash>>shift)%fanOut]
	*kid = (*kid).remove(owner, shift+fanBits, hash, old)
	if few := n.few(); few != nil {
		if len(few) == 0 {
			return nil
		}
		return &trieNode[T]{owner: owner, slots: few}
	}
	return n
}

// few returns the elements of a branch that has so few, all in leaves right below it,
// that a leaf serves better; or nil.
func (n *trieNode[T]) few() []trieSlot[T] {
	count := 0
	for _, kid := range n.kids {
		if kid == nil {
			continue
		}
		if count += len(kid.slots); kid.kids != nil || count > leafFew {
			return nil
		}
	}
	slots := make([]trieSlot[T], 0, count)
	for _, kid := range n.kids {
		if kid != nil {
			slots = append(slots, kid.slots...)
		}
	}
	return slots
}
