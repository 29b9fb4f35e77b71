// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

// The orphans of a namespace are its objects that no controller manages. Of most kinds, such as ConfigMaps, Nodes and Deployments,
// that is all of them: a second trie of the same entries was 12 % of the CPU of an event of a ConfigMap, and 20 to 60 bytes for each. So a
// namespace has a group of orphans from the time on at which one of its objects has a controller, and for as long as it has objects.

// orphansOf returns the objects of a namespace that no controller manages.
func (s *state) orphansOf(namespace string) trie[*entry] {
	if g, ok := s.orphans.group(namespace); ok {
		return g.members
	}
	return s.spaces.find(namespace)
}

// adopted keeps the orphans of the namespace of an entry that was put in the place of another one; nil if there was none.
func (e *edit) adopted(old, n *entry) {
	namespace := n.family.namespace
	switch is, was := n.family.controlled, old != nil && old.family.controlled; {
	case is && was:
	case !e.orphans.has(namespace):
		if is {
			e.split(namespace)
		}
	case !is:
		e.orphans.add(e.id, namespace, n)
	case old != nil:
		e.orphans.take(e.id, namespace, bytesOf(namespace), bytesOf(old.nameText()))
	}
}

// left keeps the orphans of the namespace of an entry that was removed.
func (e *edit) left(old *entry) {
	namespace := old.family.namespace
	switch {
	case !e.spaces.has(namespace):
		e.orphans.forget(e.id, namespace)
	case !old.family.controlled:
		e.orphans.take(e.id, namespace, bytesOf(namespace), bytesOf(old.nameText()))
	}
}

// split makes the group of the orphans of a namespace.
func (e *edit) split(namespace string) {
	e.orphans.own(e.id, namespace) // perhaps none of them is an orphan
	e.spaces.find(namespace).all(func(n *entry) bool {
		if !n.family.controlled {
			e.orphans.add(e.id, namespace, n)
		}
		return true
	})
}
