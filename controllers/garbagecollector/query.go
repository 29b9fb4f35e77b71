// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import "k8s.io/apimachinery/pkg/types"

// view has the facts about a node for the decision about it.
type view struct {
	target
	state
	hasDependents bool
	blocked       bool        // dependents block its deletion in the foreground
	unverified    []reference // to an owner that no informer has shown
}

// view returns what is known of a node, and whether there is one.
func (g *graph) view(uid types.UID) (view, bool) {
	n := g.nodes[uid]
	if n == nil {
		return view{}, false
	}
	v := view{target: n.target(), state: n.state, hasDependents: len(n.claims) > 0, blocked: n.blocked()}
	if n.state == 0 {
		for _, c := range n.claims {
			if !c.absent {
				v.unverified = append(v.unverified, c.reference)
			}
		}
	}
	return v, true
}

// namedBy is a way in which an owner is named, with one of the objects that name it so.
type namedBy struct {
	reference
	dependent target
}

// mostUnverified is how many dependents unverified returns: a reader needs examples, and an owner may have thousands.
const mostUnverified = 8

// unverified returns dependents of an owner that no informer has shown and that may exist.
func (g *graph) unverified(owner types.UID) (all []namedBy) {
	n := g.nodes[owner]
	if n == nil || n.state != 0 {
		return nil
	}
	for _, c := range n.claims {
		if c.absent {
			continue
		}
		for _, dependent := range c.dependents {
			if len(all) == mostUnverified {
				return all
			}
			all = append(all, namedBy{c.reference, dependent.target()})
		}
	}
	return all
}

// blocked reports whether dependents block the deletion of n in the foreground. An object
// whose reference names n wrongly does not depend on it.
func (n *node) blocked() bool {
	for _, c := range n.claims {
		if c.blocking > 0 && n.is(&c.reference) {
			return true
		}
	}
	return false
}

// blocking returns the dependents that block the deletion of a node in the foreground.
func (g *graph) blocking(uid types.UID) (all []target) {
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	for _, c := range n.claims {
		if c.blocking == 0 || !n.is(&c.reference) {
			continue
		}
		for _, dependent := range c.dependents {
			if e := dependent.edgeTo(c); e != nil && e.blocking {
				all = append(all, dependent.target())
			}
		}
	}
	return all
}

// verdict is what is known of the object that a reference names.
type verdict int

const (
	unsure  verdict = iota // the owner must be read from the server
	solid                  // it exists
	waiting                // it waits for its dependents to be deleted
	absent                 // it does not exist, and never will
)

// verdict returns what is known of the object that a reference names.
func (g *graph) verdict(r reference) verdict {
	n := g.nodes[r.uid]
	if n == nil {
		return unsure
	}
	if n.is(&r) {
		switch {
		case n.state.has(gone):
			return absent
		case n.state.has(foreground):
			return waiting
		}
		return solid
	}
	if c := g.claims[r]; c != nil && c.absent {
		return absent
	}
	return unsure
}

// dependents returns the objects that name the node as their owner.
func (g *graph) dependents(uid types.UID) []target {
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	var all []target
	for _, c := range n.claims {
		for _, dependent := range c.dependents {
			all = append(all, dependent.target())
		}
	}
	return all
}

// circle returns the owners of a node which wait for it, and for which it waits
// itself, by way of however many others: of these none would ever go.
func (g *graph) circle(uid types.UID) []types.UID {
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	var owners []types.UID
	for _, e := range n.owners {
		if waits(&e) && reaches(e.claim.owner, n, map[*node]bool{}) {
			owners = append(owners, e.claim.owner.uid)
		}
	}
	return owners
}

// waits reports whether the owner that an edge leads to waits for its dependent.
func waits(e *edge) bool {
	owner := e.claim.owner
	return e.blocking && owner.state.has(foreground) && owner.is(&e.claim.reference)
}

// reaches reports whether one that waits for from is, at some distance, end. It
// goes from dependents to owners, of which there are few.
func reaches(from, end *node, seen map[*node]bool) bool {
	if from == end {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for i := range from.owners {
		if e := &from.owners[i]; waits(e) && reaches(e.claim.owner, end, seen) {
			return true
		}
	}
	return false
}
