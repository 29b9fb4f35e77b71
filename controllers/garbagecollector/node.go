// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// kind is a group, version and kind in eight bytes, however many objects have it.
type kind = unique.Handle[schema.GroupVersionKind]

func kindOf(k schema.GroupVersionKind) kind { return unique.Make(k) }

// sameKind reports whether two kinds are one. Versions are views of the same objects, and
// a reference may name another version than the informer reads.
func sameKind(a, b kind) bool {
	return a == b || a.Value().GroupKind() == b.Value().GroupKind()
}

// target is an object that the graph has observed.
type target struct {
	uid  types.UID
	kind kind
	key  object.Key
}

// reference is an owner as a dependent names it: an object that should have this
// UID and be found under this kind and name, in the namespace of the dependent or
// outside of namespaces.
type reference struct {
	uid       types.UID
	kind      kind
	name      string
	namespace string // of the dependent
}

func referenceOf(o metav1.OwnerReference, namespace string) reference {
	return reference{
		uid: o.UID, kind: kindOf(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)),
		name: o.Name, namespace: namespace,
	}
}

// is reports whether the reference equals o in the namespace, without making a kind of
// it.
func (r *reference) is(o *metav1.OwnerReference, namespace string) bool {
	return r.uid == o.UID && r.name == o.Name && r.namespace == namespace &&
		r.kind.Value() == schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

// node is an object that an informer has shown, or that others name as their owner.
type node struct {
	uid types.UID
	// kind and key are known of objects that an informer shows, or has shown.
	kind   kind
	key    object.Key
	owners []edge   // one for each claim that it makes
	claims []*claim // the ways in which others name it
	state  state
	asked  uint8 // reads from the server for an owner that no informer has shown
}

// state is what is known of a node. The zero state is that of an owner that no informer
// has shown: its claims are to be verified.
type state uint8

const (
	observed   state = 1 << iota // an informer shows it
	gone                         // an informer has shown it and its deletion
	deleting                     // it has a deletion timestamp
	foreground                   // and waits for its blocking dependents to go
	orphaning                    // or for its dependents to be orphaned
	behind                       // its informer does not show yet what was written, or read from the server
)

func (s state) has(f state) bool { return s&f != 0 }

// stateOf is the state of an object that an informer shows.
func stateOf(m *object.Meta) state {
	s := observed
	if !m.Deleting() {
		return s
	}
	s |= deleting
	switch {
	case slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents):
		// Of both finalizers this one comes first: an owner does not wait for
		// dependents that are orphaned.
		s |= orphaning
	case slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents):
		s |= foreground
	}
	return s
}

// is reports whether a reference has the present or last kind and name of the node.
func (n *node) is(r *reference) bool {
	return n.state.has(observed|gone) && n.key.Name == r.name && sameKind(n.kind, r.kind) &&
		(n.key.Namespace == "" || n.key.Namespace == r.namespace)
}

func (n *node) target() target { return target{uid: n.uid, kind: n.kind, key: n.key} }

// claim is one way in which objects name an owner. Nearly always there is one for
// each namespace that has dependents of the owner.
type claim struct {
	reference
	owner      *node
	place      int32 // in owner.claims
	blocking   int32 // how many of the dependents block the owner's foreground deletion
	absent     bool  // the server has no such object
	dependents []*node
}

// edge leads from a dependent to its owner.
type edge struct {
	claim    *claim
	place    int32 // in claim.dependents
	blocking bool
}

// edgeTo returns the edge from n to a claim, or nil.
func (n *node) edgeTo(c *claim) *edge {
	for i := range n.owners {
		if n.owners[i].claim == c {
			return &n.owners[i]
		}
	}
	return nil
}

func blocks(o *metav1.OwnerReference) bool {
	return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
}

// own returns copies of strings that share one piece of memory. What the graph
// keeps must not hold on to the object that it was read from.
func own(a, b string) (string, string) {
	var both strings.Builder
	both.Grow(len(a) + len(b))
	both.WriteString(a)
	both.WriteString(b)
	return both.String()[:len(a)], both.String()[len(a):]
}

// ownNamespace returns a copy of a namespace's name that all its users share.
func ownNamespace(name string) string { return unique.Make(name).Value() }
