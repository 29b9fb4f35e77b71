// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"fmt"
	"iter"
	"strings"

	"github.com/setpoint-io/setpoint/object"
)

// What happened to the object of a Cause.
const (
	Added    = "Added"    // it appeared
	Updated  = "Updated"  // it changed
	Deleted  = "Deleted"  // it is gone
	Replaced = "Replaced" // another object has its name
	Resync   = "Resync"   // nothing: all objects are reconciled again
	Timer    = "Timer"    // a time was reached
	Retry    = "Retry"    // an earlier run failed
	Enqueued = "Enqueued" // a run of another key enqueued it
	Fed      = "Fed"      // something that no informer shows, see controller.Keyed.Feed
)

// Cause is a reason why a key is in the queue. The zero Cause is no reason and is not kept.
type Cause struct {
	Source  string     // what added the key: the name of a handler or source, one of few
	Verb    string     // Added, Updated, Deleted, Replaced, Resync, Timer, Retry, Enqueued or Fed
	Ref     object.Ref // the object that changed; zero where there is none
	From    string     // its resourceVersion before; empty if it is new or the source does not know
	Version string     // its resourceVersion
}

// String returns, for example, "pods: Updated Pod default/web-1 at 4711".
func (c Cause) String() string {
	var b strings.Builder
	b.WriteString(c.Source)
	if c.Verb != "" {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(c.Verb)
	}
	if c.Ref != (object.Ref{}) {
		fmt.Fprintf(&b, " %v", c.Ref)
	}
	if c.Version != "" {
		fmt.Fprintf(&b, " at %s", c.Version)
	}
	return b.String()
}

// maxCauses is how many causes a key keeps: the first three and the last. It bounds the memory
// of a key that many objects map to. The first causes and the last one explain a run best.
const maxCauses = 4

// Causes has the reasons of a run: one cause for each source, verb and object, with that
// object's versions before the first change and after the last, in order of arrival. Of more than four it has the first three and the
// last.
//
// The memory belongs to the queue, which reuses it: read Causes before Done, or keep the result
// of slices.Collect of All.
type Causes struct {
	first causeList
}

// Dropped returns how many causes were not kept.
func (c Causes) Dropped() int {
	if c.first == nil {
		return 0
	}
	return int(c.first.dropped)
}

// All yields the causes in order of arrival.
func (c Causes) All() iter.Seq[Cause] {
	return func(yield func(Cause) bool) {
		for n := c.first; n != nil; n = n.next {
			if !yield(n.Cause) {
				return
			}
		}
	}
}

// String joins the causes with commas, and ends with the number of causes that are missing.
func (c Causes) String() string {
	var b strings.Builder
	for cause := range c.All() {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(cause.String())
	}
	if n := c.Dropped(); n > 0 {
		fmt.Fprintf(&b, " and %d more", n)
	}
	return b.String()
}

// causeList is a linked list of at most maxCauses causes; nil is the empty one. Most keys have
// one cause of 128 bytes, so an array would waste memory. The first node has the fields of the
// whole list.
type causeList = *causeNode

type causeNode struct {
	Cause
	next    *causeNode
	dropped int32 // in the first node: causes that were not kept
}

// merge adds a cause, using nodes of the pool. A cause that is there keeps its From.
func (p *causePool) merge(l *causeList, c *Cause) {
	at, n := l, 0
	for ; *at != nil; at = &(*at).next {
		node := *at
		if node.Ref == c.Ref && node.Verb == c.Verb && node.Source == c.Source {
			node.Version = c.Version
			return
		}
		if n++; n == maxCauses {
			node.Cause = *c
			(*l).dropped++
			return
		}
	}
	*at = p.get()
	(*at).Cause = *c
}

// causePool has nodes for reuse.
type causePool struct {
	fresh slab[causeNode]
	free  *causeNode // the first of them still has its cause, the others are empty
	n     int        // in free
	inUse int
}

func (p *causePool) get() *causeNode {
	p.inUse++
	n := p.free
	if n == nil {
		return p.fresh.get(p.inUse)
	}
	p.free, n.next = n.next, nil
	p.n--
	return n
}

// put returns the nodes of a list to the pool and empties the list.
func (p *causePool) put(l *causeList) {
	for n := *l; n != nil; {
		next := n.next
		p.inUse--
		if p.n < maxSpare {
			// The next add reuses the first node and overwrites it, so it is not cleared
			// here. The strings of that one cause stay in memory until then.
			if p.free != nil {
				p.free.Cause = Cause{}
			}
			n.next, n.dropped = p.free, 0
			p.free = n
			p.n++
		}
		n = next
	}
	*l = nil
}
