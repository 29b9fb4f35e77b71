// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// graph holds which object owns which, as far as informers and the server's answers show.
// It does no IO and has no clock. It takes changes by observe, remove, forget and refute;
// take returns the nodes to reconcile.
//
// It has a node for each object that an informer shows, and for each owner that at least
// one of these names. A graph is used by one goroutine at a time.
type graph struct {
	nodes  map[types.UID]*node
	claims map[reference]*claim

	due       []types.UID
	misplaced []misplacement
}

// misplacement is a dependent that names an owner which lives in another namespace.
type misplacement struct {
	dependent target
	reference reference
}

func newGraph() *graph {
	return &graph{nodes: map[types.UID]*node{}, claims: map[reference]*claim{}}
}

// take returns what the changes since the last call have made due: nodes to reconcile,
// with repetitions, and references to report. The results are valid until the next
// change.
func (g *graph) take() ([]types.UID, []misplacement) {
	due, misplaced := g.due, g.misplaced
	g.due, g.misplaced = g.due[:0], g.misplaced[:0]
	return due, misplaced
}

func (g *graph) look(n *node) { g.due = append(g.due, n.uid) }

func (g *graph) lookAll(nodes []*node) {
	for _, n := range nodes {
		g.look(n)
	}
}

// observe notes an object as an informer shows it.
func (g *graph) observe(k kind, m *object.Meta) {
	n := g.nodes[m.UID]
	if n == nil {
		uid, name := own(string(m.UID), m.Name)
		n = &node{uid: types.UID(uid), key: object.Key{Name: name}}
		g.nodes[n.uid] = n
	}
	before := n.state
	if before.has(observed) && n.kind != k {
		if !sameKind(n.kind, k) {
			return // one object under two names; the first one stays
		}
		n.kind = k
	}
	n.state = stateOf(m)
	if !before.has(observed) {
		g.identify(n, k, m.Key)
	}
	changed := g.setOwners(n, m.OwnerReferences)
	begins := n.state &^ before
	if begins.has(foreground) {
		for _, c := range n.claims {
			g.lookAll(c.dependents)
		}
	}
	switch {
	case begins.has(foreground | orphaning):
		g.look(n)
	case n.state.has(foreground) && changed: // a new owner may have closed a circle
		g.look(n)
	case before.has(behind) && (!n.state.has(deleting) || n.state.has(foreground|orphaning)):
		g.look(n)
	}
}

// identify gives a node that was not observed before its kind and key. Dependents that
// name it wrongly become due: the owner that they name may not exist.
func (g *graph) identify(n *node, k kind, key object.Key) {
	n.kind, n.asked = k, 0
	if n.key.Name != key.Name {
		_, n.key.Name = own("", key.Name)
	}
	n.key.Namespace = ownNamespace(key.Namespace)
	for _, c := range n.claims {
		if n.is(&c.reference) {
			c.absent = false
			continue
		}
		g.lookAll(c.dependents)
		for _, dependent := range c.dependents {
			g.reportMisplaced(dependent, c)
		}
	}
}

func (g *graph) reportMisplaced(dependent *node, c *claim) {
	owner := c.owner
	if owner.state.has(observed) && owner.key.Namespace != "" && owner.key.Namespace != dependent.key.Namespace {
		g.misplaced = append(g.misplaced, misplacement{dependent: dependent.target(), reference: c.reference})
	}
}

// setOwners sets the edges of a node to those of its references, and reports whether they
// have changed.
func (g *graph) setOwners(n *node, refs []metav1.OwnerReference) bool {
	if n.hasOwners(refs) {
		return false
	}
	before := n.owners
	n.owners = make([]edge, 0, len(refs))
	for i := range refs {
		ref := &refs[i]
		c, first := g.claim(referenceOf(*ref, n.key.Namespace))
		if e := n.edgeTo(c); e != nil { // named twice
			g.setBlocking(e, e.blocking || blocks(ref))
			continue
		}
		if at := slices.IndexFunc(before, func(e edge) bool { return e.claim == c }); at >= 0 {
			n.owners = append(n.owners, before[at])
			g.setBlocking(&n.owners[len(n.owners)-1], blocks(ref))
			before = slices.Delete(before, at, at+1)
			if g.verdict(c.reference) == absent {
				g.look(n) // the other owners decide about this object
			}
			continue
		}
		n.owners = append(n.owners, edge{claim: c, place: int32(len(c.dependents)), blocking: false})
		c.dependents = append(c.dependents, n)
		g.setBlocking(&n.owners[len(n.owners)-1], blocks(ref))
		g.appeared(n, c, first)
	}
	for _, e := range before {
		g.unlink(e)
	}
	return true
}

// hasOwners reports whether the edges of a node match its references. It is called at
// each change of each object, and allocates nothing.
func (n *node) hasOwners(refs []metav1.OwnerReference) bool {
	if len(n.owners) != len(refs) {
		return false
	}
	for i := range refs {
		e := &n.owners[i]
		if e.blocking != blocks(&refs[i]) || !e.claim.is(&refs[i], n.key.Namespace) {
			return false
		}
	}
	return true
}

// claim returns the claim that a reference makes, and whether it is the first to
// make it.
func (g *graph) claim(r reference) (c *claim, first bool) {
	if c := g.claims[r]; c != nil {
		return c, false
	}
	owner := g.nodes[r.uid]
	if owner == nil {
		uid, name := own(string(r.uid), r.name)
		owner = &node{uid: types.UID(uid), key: object.Key{Name: name}}
		g.nodes[owner.uid] = owner
	}
	r.uid = owner.uid
	if r.name == owner.key.Name {
		r.name = owner.key.Name // one copy
	} else {
		_, r.name = own("", r.name)
	}
	r.namespace = ownNamespace(r.namespace)
	c = &claim{reference: r, owner: owner, place: int32(len(owner.claims))}
	owner.claims = append(owner.claims, c)
	g.claims[c.reference] = c
	return c, true
}

// appeared adds the nodes that a new dependent makes due.
func (g *graph) appeared(n *node, c *claim, first bool) {
	owner := c.owner
	switch {
	case !owner.state.has(observed | gone):
		if c.absent {
			g.look(n)
		} else if first {
			g.look(owner)
		}
	case owner.state.has(gone):
		g.look(n)
	case !owner.is(&c.reference):
		g.look(n)
		g.reportMisplaced(n, c)
	case owner.state.has(foreground):
		g.look(n)
	}
	if owner.state.has(orphaning) {
		g.look(owner)
	}
}

// setBlocking sets whether an edge blocks the deletion of the owner. An owner that waits
// becomes due when no dependent is left that blocks it.
func (g *graph) setBlocking(e *edge, blocking bool) {
	if e.blocking == blocking {
		return
	}
	e.blocking = blocking
	if blocking {
		e.claim.blocking++
		return
	}
	e.claim.blocking--
	if e.claim.blocking == 0 && e.claim.owner.state.has(foreground) {
		g.look(e.claim.owner)
	}
}

// unlink removes a dependent from the claim that its edge leads to. It removes the claim
// and its owner from the graph if nothing else refers to them.
func (g *graph) unlink(e edge) {
	g.setBlocking(&e, false)
	c := e.claim
	last := len(c.dependents) - 1
	if moved := c.dependents[last]; int32(last) != e.place {
		c.dependents[e.place] = moved
		moved.edgeTo(c).place = e.place
	}
	c.dependents[last] = nil
	c.dependents = c.dependents[:last]
	if last > 0 {
		if 4*last < cap(c.dependents) {
			c.dependents = slices.Clip(slices.Clone(c.dependents))
		}
		return
	}
	delete(g.claims, c.reference)
	owner := c.owner
	end := len(owner.claims) - 1
	owner.claims[c.place] = owner.claims[end]
	owner.claims[c.place].place = c.place
	owner.claims[end] = nil
	owner.claims = owner.claims[:end]
	if end == 0 {
		owner.claims = nil
		if !owner.state.has(observed) {
			delete(g.nodes, owner.uid)
		}
	}
}

// remove records that an informer no longer shows an object. certain is set if its
// deletion was observed, and not just concluded from a list: then no object ever has its
// UID again, and its dependents need no read from the server.
func (g *graph) remove(k kind, uid types.UID, certain bool) {
	n := g.nodes[uid]
	if n == nil || !n.state.has(observed) || !sameKind(n.kind, k) {
		return
	}
	n.state = 0 // before its own references go: it may be its own owner
	owners := n.owners
	n.owners = nil
	for _, e := range owners {
		g.unlink(e)
	}
	if len(n.claims) == 0 {
		delete(g.nodes, uid)
		return
	}
	if !certain {
		n.asked = 0
		for _, c := range n.claims {
			c.absent = false
		}
		g.look(n)
		return
	}
	n.state = gone
	for _, c := range n.claims {
		g.lookAll(c.dependents)
	}
}

// forget removes the objects of a kind that is no longer watched, unless they are in
// kept.
func (g *graph) forget(k kind, kept func(object.Key, types.UID) bool) {
	for uid, n := range g.nodes {
		if n.state.has(observed) && sameKind(n.kind, k) && !kept(n.key, uid) {
			g.remove(k, uid, false)
		}
	}
}

// refute records that the server has no object that a reference names. The objects with
// that reference become due. An object that an informer shows is not refuted: the
// informer will show its deletion.
func (g *graph) refute(r reference) {
	c := g.claims[r]
	if c == nil || c.absent || c.owner.state.has(observed) && c.owner.is(&r) {
		return
	}
	c.absent = true
	g.lookAll(c.dependents)
}

// expect records that an object is known to be newer than its informer shows. When the
// informer has caught up, the object becomes due: several changes may be shown as one,
// and a change that was undone and made again as none.
func (g *graph) expect(uid types.UID) {
	if n := g.nodes[uid]; n != nil && n.state.has(observed) {
		n.state |= behind
	}
}

// unexpect undoes expect.
func (g *graph) unexpect(uid types.UID) {
	if n := g.nodes[uid]; n != nil {
		n.state &^= behind
	}
}

// ask counts the reads from the server for an owner that no informer has shown, this one
// included.
func (g *graph) ask(uid types.UID) int {
	n := g.nodes[uid]
	if n == nil {
		return 0
	}
	n.asked = min(n.asked, math.MaxUint8-1) + 1
	return int(n.asked)
}

// reconsider makes all owners due that no informer has shown: more kinds are known now
// than at their last read from the server.
func (g *graph) reconsider() {
	for _, n := range g.nodes {
		if n.state == 0 {
			n.asked = 0
			g.look(n)
		}
	}
}
