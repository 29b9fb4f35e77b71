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
)

// Cause says why a key is in the queue. The zero Cause is "not said" and is not
// kept.
type Cause struct {
	Source  string     // who added the key: the name of a handler or source, one of few
	Verb    string     // Added, Updated, Deleted, Replaced, Resync, Timer or Retry
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
// or keep what Slice returns.
type Causes struct {
	list causeList
}

// Len returns how many causes All yields, at most MaxCauses.
func (c Causes) Len() int { return int(c.list.n) }

// Dropped returns how many causes there was no room for.
func (c Causes) Dropped() int { return int(c.list.dropped) }

// All yields the causes in order of arrival.
func (c Causes) All() iter.Seq[Cause] {
	return func(yield func(Cause) bool) {
		for n := c.list.first; n != nil; n = n.next {
			if !yield(n.Cause) {
				return
			}
		}
	}
}

// Slice returns a copy of the causes, which the caller owns, or nil if there are none.
func (c Causes) Slice() []Cause { return c.list.slice() }

// String joins the causes with commas and says how many are missing.
func (c Causes) String() string {
	var b strings.Builder
	for cause := range c.All() {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(cause.String())
	}
	if c.list.dropped > 0 {
		fmt.Fprintf(&b, " and %d more", c.list.dropped)
	}
	return b.String()
}

// causeList is a chain of at most MaxCauses causes. Most keys have one, which is
// why it is a chain and not an array: a Cause has 128 bytes.
type causeList struct {
	first, last *causeNode
	n, dropped  int32
}

type causeNode struct {
	Cause
	next *causeNode
}

// merge adds a cause, using nodes of the pool.
func (l *causeList) merge(c *Cause, pool *causePool) {
	for n := l.first; n != nil; n = n.next {
		if n.Ref == c.Ref && n.Verb == c.Verb && n.Source == c.Source {
			n.Version = c.Version
			return
		}
	}
	if l.n == MaxCauses {
		l.last.Cause = *c
		l.dropped++
		return
	}
	n := pool.get()
	n.Cause = *c
	if l.first == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
	l.n++
}

func (l *causeList) slice() []Cause {
	if l.n == 0 {
		return nil
	}
	s := make([]Cause, 0, l.n)
	for n := l.first; n != nil; n = n.next {
		s = append(s, n.Cause)
	}
	return s
}

// causePool keeps nodes for reuse.
type causePool struct {
	free *causeNode
	n    int
}

func (p *causePool) get() *causeNode {
	n := p.free
	if n == nil {
		return new(causeNode)
	}
	p.free, n.next = n.next, nil
	p.n--
	return n
}

// put takes back the nodes of a list and empties it.
func (p *causePool) put(l *causeList) {
	for n := l.first; n != nil; {
		next := n.next
		if p.n < maxSpare {
			*n = causeNode{next: p.free} // keep none of the strings alive
			p.free = n
			p.n++
		}
		n = next
	}
	*l = causeList{}
}
