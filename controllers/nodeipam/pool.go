// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"fmt"
	"net/netip"
)

// largestIPv6 is by how many bits the ranges of nodes may be smaller than an IPv6 network.
// Source: k8s.io/kubernetes/pkg/controller/nodeipam/ipam/cidrset, clusterSubnetMaxDiff.
const largestIPv6 = 16

// pool is a network that is cut into ranges of one size, which have numbers from 0 on. A range
// may be used several times: by nodes whose addresses were chosen elsewhere.
type pool struct {
	network netip.Prefix
	bits    int // length of the prefix of a range
	size    int // how many ranges there are

	used  bitSet
	extra map[int]int // how often a range is used beyond the first time
	count int         // how many ranges are used
	next  int         // the search for a free range begins here

	services int // how many ranges have addresses of Services
	reported int // the last level that was reported, see levels
}

// newPool returns a pool of a network, whose ranges have prefixes of a length.
func newPool(network netip.Prefix, bits int) (*pool, error) {
	network = network.Masked()
	switch {
	case bits < network.Bits():
		return nil, fmt.Errorf("a node cannot have a /%d of %s: the range of a node is larger than the network", bits, network)
	case bits > network.Addr().BitLen():
		return nil, fmt.Errorf("a node cannot have a /%d of %s: the longest prefix of the family is /%d", bits, network, network.Addr().BitLen())
	case network.Addr().Is6() && bits-network.Bits() > largestIPv6:
		return nil, fmt.Errorf("a node cannot have a /%d of %s: a network has %d ranges at most; want /%d or shorter",
			bits, network, 1<<largestIPv6, network.Bits()+largestIPv6)
	}
	return &pool{network: network, bits: bits, size: 1 << (bits - network.Bits()), extra: map[int]int{}}, nil
}

// at returns the range with a number.
func (p *pool) at(number int) netip.Prefix {
	raw := p.network.Addr().AsSlice()
	for bit := p.bits - 1; bit >= p.network.Bits(); bit-- {
		if number&1 == 1 {
			raw[bit/8] |= 0x80 >> (bit % 8)
		}
		number >>= 1
	}
	address, _ := netip.AddrFromSlice(raw) // the length is that of an address
	return netip.PrefixFrom(address, p.bits)
}

// numberOf returns the number of the range that has an address of the network.
func (p *pool) numberOf(address netip.Addr) (number int) {
	raw := address.AsSlice()
	for bit := p.network.Bits(); bit < p.bits; bit++ {
		number <<= 1
		if raw[bit/8]&(0x80>>(bit%8)) != 0 {
			number++
		}
	}
	return number
}

// span returns the numbers of the first and the last range that share addresses with r, and
// whether there are any.
func (p *pool) span(r netip.Prefix) (first, last int, ok bool) {
	switch {
	case !p.network.Overlaps(r):
		return 0, -1, false
	case r.Bits() <= p.network.Bits():
		return 0, p.size - 1, true
	case r.Bits() >= p.bits:
		first = p.numberOf(r.Addr())
		return first, first, true
	}
	first = p.numberOf(r.Masked().Addr())
	return first, first + 1<<(p.bits-r.Bits()) - 1, true
}

// take uses the next free range, and returns how many ranges before it were used. The search
// begins behind the range that was taken last, so a range that has become free is taken again
// only after all others.
func (p *pool) take() (r netip.Prefix, tries int, ok bool) {
	if p.full() {
		return netip.Prefix{}, 0, false
	}
	for p.used.has(p.next) {
		p.next = (p.next + 1) % p.size
		tries++
	}
	taken := p.next
	p.use(taken)
	p.next = (taken + 1) % p.size
	return p.at(taken), tries, true
}

func (p *pool) full() bool { return p.count >= p.size }

// occupy uses all ranges that share addresses with r, and returns how many of them were free
// and how many were used.
func (p *pool) occupy(r netip.Prefix) (free, used int) {
	first, last, _ := p.span(r)
	for number := first; number <= last; number++ {
		if p.use(number) {
			free++
		} else {
			used++
		}
	}
	return free, used
}

// release ends one use of all ranges that share addresses with r, and returns how many of them
// are free now.
func (p *pool) release(r netip.Prefix) (free int) {
	first, last, _ := p.span(r)
	for number := first; number <= last; number++ {
		if p.free(number) {
			free++
		}
	}
	return free
}

// use uses a range, and reports whether it was free.
func (p *pool) use(number int) bool {
	if p.used.has(number) {
		p.extra[number]++
		return false
	}
	p.used.add(number)
	p.count++
	return true
}

// free ends one use of a range, and reports whether it is free now.
func (p *pool) free(number int) bool {
	switch more := p.extra[number]; {
	case more > 1:
		p.extra[number]--
		return false
	case more == 1:
		delete(p.extra, number)
		return false
	case !p.used.has(number):
		return false
	}
	p.used.remove(number)
	p.count--
	return true
}

// bitSet is a set of numbers from 0 on. It has room up to the largest one that it has had.
type bitSet []uint64

func (s bitSet) has(n int) bool { return n/64 < len(s) && s[n/64]&(1<<(n%64)) != 0 }

func (s *bitSet) add(n int) {
	for n/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[n/64] |= 1 << (n % 64)
}

func (s bitSet) remove(n int) {
	if n/64 < len(s) {
		s[n/64] &^= 1 << (n % 64)
	}
}
