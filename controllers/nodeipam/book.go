// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"net/netip"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// book has which ranges are used, and by which Nodes. It is safe for concurrent use.
type book struct {
	counts *counts

	mu    sync.Mutex
	pools []*pool
	nodes map[string]holding // by the names of Nodes
}

// holding is the ranges of a Node: those of its spec, or those that it is to get.
type holding struct {
	uid    types.UID
	ranges []netip.Prefix
}

// newBook returns a book in which no Node has ranges.
func newBook(pools []*pool, c *counts) *book {
	b := &book{counts: c, pools: pools, nodes: map[string]holding{}}
	for _, p := range pools {
		c.begin(p)
	}
	return b
}

// assign returns a range of each pool for a Node. A Node that has ranges keeps them: what was
// written once without an answer is written again. If a pool has no range left, assign takes
// nothing and returns the pool's usage. crossed are the pools that have become fuller than a
// level.
func (b *book) assign(name string, uid types.UID) (ranges []netip.Prefix, crossed []usage, full *usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held, ok := b.nodes[name]; ok && held.uid == uid {
		return held.ranges, nil, nil
	}
	b.forget(name)
	for _, p := range b.pools {
		if p.full() {
			return nil, nil, new(p.usage())
		}
	}
	for _, p := range b.pools {
		r, tries, _ := p.take()
		ranges = append(ranges, r)
		b.counts.allocated(p, 1)
		b.counts.searched(p, tries)
		if p.rise() {
			crossed = append(crossed, p.usage())
		}
	}
	b.nodes[name] = holding{uid, ranges}
	return ranges, crossed, nil
}

// hold notes the ranges that a Node has. It returns how many ranges of the pools became free,
// and the names of other Nodes that have some of the addresses.
func (b *book) hold(name string, uid types.UID, ranges []netip.Prefix) (free int, others []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if held, ok := b.nodes[name]; ok && held.uid == uid && slices.Equal(held.ranges, ranges) {
		return 0, b.sharing(name, ranges)
	}
	shared := false
	for _, p := range b.pools {
		for _, r := range ranges {
			added, used := p.occupy(r)
			b.counts.allocated(p, added)
			shared = shared || used > 0
		}
	}
	free = b.forget(name) // now, so that what the Node keeps was used all the time
	b.nodes[name] = holding{uid, ranges}
	if shared {
		others = b.sharing(name, ranges)
	}
	return free, others
}

// advance has each pool give the ranges behind the last one that a Node has first: one before it
// may have become free just before the process started.
func (b *book) advance() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pools {
		next := 0
		for _, held := range b.nodes {
			for _, r := range held.ranges {
				if first, last, ok := p.span(r); ok && first == last {
					next = max(next, last+1)
				}
			}
		}
		p.next = next % p.size
	}
}

// release forgets a Node, and returns how many ranges became free.
func (b *book) release(name string) (free int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.forget(name)
}

// forget is release, with the lock held.
func (b *book) forget(name string) (free int) {
	held, ok := b.nodes[name]
	if !ok {
		return 0
	}
	delete(b.nodes, name)
	for _, p := range b.pools {
		freed := 0
		for _, r := range held.ranges {
			freed += p.release(r)
		}
		b.counts.released(p, freed)
		p.fall()
		free += freed
	}
	return free
}

// sharing returns the names of other Nodes that have addresses of some ranges.
func (b *book) sharing(name string, ranges []netip.Prefix) (others []string) {
	if !b.anyShared(ranges) {
		return nil
	}
	for other, held := range b.nodes {
		if other != name && overlap(held.ranges, ranges) {
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return others
}

// anyShared reports whether one of the pools' ranges with addresses of ranges is used twice.
// It spares a search among all Nodes.
func (b *book) anyShared(ranges []netip.Prefix) bool {
	for _, p := range b.pools {
		if len(p.extra) == 0 {
			continue
		}
		for _, r := range ranges {
			first, last, _ := p.span(r)
			for number := first; number <= last; number++ {
				if p.extra[number] > 0 {
					return true
				}
			}
		}
	}
	return false
}

// outside returns those of the ranges of a Node that no pool has addresses of.
func (b *book) outside(ranges []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(ranges), func(r netip.Prefix) bool {
		return slices.ContainsFunc(b.pools, func(p *pool) bool { return p.network.Overlaps(r) })
	})
}

// names returns the names of all Nodes that have ranges.
func (b *book) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := make([]string, 0, len(b.nodes))
	for name := range b.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// usages returns how full the pools are, in their order.
func (b *book) usages() (all []usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pools {
		all = append(all, p.usage())
	}
	return all
}

// overlap reports whether two lists of ranges have an address in common.
func overlap(a, b []netip.Prefix) bool {
	for _, r := range a {
		if slices.ContainsFunc(b, r.Overlaps) {
			return true
		}
	}
	return false
}
