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
	Replaced = "Replaced" // another object took its name
	Resync   = "Resync"   // nothing: everything is looked at again
	Timer    = "Timer"    // a time has come
	Retry    = "Retry"    // an earlier run failed
	Enqueued = "Enqueued" // a run of another key asked for it
	Fed      = "Fed"      // something that no informer shows, see controller.Controller.Feed
)

// Cause says why a key is in the queue. The zero Cause is "not said" and is not
// kept.
type Cause struct {
	Source  string     // who added the key: the name of a handler or source, one of few
	Verb    string     // Added, Updated, Deleted, Replaced, Resync, Timer, Retry, Enqueued or Fed
	Ref     object.Ref // the object that changed; zero where there is none
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

// MaxCauses is how many causes a key keeps: the first three and the last. It
// bounds the memory of a key that everything points to; what explains a run is
// what started it and what came last.
const MaxCauses = 4

// Causes says why a run of a key was asked for: one cause for each source, verb
// and object, with that object's last version, in order of arrival. Of more than
// MaxCauses it holds the first and the last.
//
// The memory belongs to the queue, which uses it again: read Causes before Done,
// or keep what slices.Collect makes of All.
type Causes struct {
	first causeList
}

// Dropped returns how many causes there was no room for.
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

// String joins the causes with commas and says how many are missing.
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

// causeList is a chain of at most MaxCauses causes; nil is the empty one. Most
// keys have one, which is why it is a chain and not an array: a Cause has 128
// bytes. What counts for the whole list is kept in its first node.
type causeList = *causeNode

type causeNode struct {
	Cause
	next    *causeNode
	dropped int32 // in the first node: causes there was no room for
}

// merge adds a cause, using nodes of the pool.
func (p *causePool) merge(l *causeList, c *Cause) {
	at, n := l, 0
	for ; *at != nil; at = &(*at).next {
		node := *at
		if node.Ref == c.Ref && node.Verb == c.Verb && node.Source == c.Source {
			node.Version = c.Version
			return
		}
		if n++; n == MaxCauses {
			node.Cause = *c
			(*l).dropped++
			return
		}
	}
	*at = p.get()
	(*at).Cause = *c
}

// causePool keeps nodes for reuse.
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

// put takes back the nodes of a list and empties it.
func (p *causePool) put(l *causeList) {
	for n := *l; n != nil; {
		next := n.next
		p.inUse--
		if p.n < maxSpare {
			// Strings of one cause are kept alive, and no more: the first node is
			// what the next add takes, and clearing it meanwhile has a price.
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
