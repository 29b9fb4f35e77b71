// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The ranges of a node are cut from these, so that they meet neither each other nor the
// Services of a control plane (10.0.0.0/24 by default, 10.96.0.0/12 with kubeadm).
var (
	defaultPodCIDRs  = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/10"), netip.MustParsePrefix("fd5e:7a01::/48")}
	defaultNodeCIDRs = []netip.Prefix{netip.MustParsePrefix("10.192.0.0/16"), netip.MustParsePrefix("fd5e:7a02::/64")}
)

// MaxNodes is how many Nodes the default ranges have room for, with up to 110
// Pods each: 10.128.0.0/10 in pieces of 256 addresses.
const MaxNodes = 1 << 14

// podRange returns the n-th piece of an address range. An IPv4 piece has at least
// two addresses for each Pod of a node and at least 256, so that an address is
// not used again at once; an IPv6 piece is a /64.
func podRange(from netip.Prefix, n, pods int) (netip.Prefix, error) {
	hostBits := 64
	if from.Addr().Is4() {
		hostBits = max(8, bits.Len(uint(2*pods-1)))
	}
	room := from.Addr().BitLen() - hostBits - from.Bits()
	if room < 0 || room < 31 && n >= 1<<room {
		return netip.Prefix{}, fmt.Errorf("range %s has no room for the Pods of node %d: take fewer nodes, or fewer Pods a node", from, n)
	}
	offset := new(big.Int).Lsh(big.NewInt(int64(n)), uint(hostBits))
	return netip.PrefixFrom(plus(from.Masked().Addr(), offset), from.Addr().BitLen()-hostBits), nil
}

func plus(a netip.Addr, offset *big.Int) netip.Addr {
	sum := new(big.Int).SetBytes(a.AsSlice())
	sum.Add(sum, offset)
	out := make([]byte, a.BitLen()/8)
	sum.FillBytes(out)
	addr, _ := netip.AddrFromSlice(out) // the length is that of an address
	return addr
}

// addresses hands out the addresses of Pods: those of one Pod stay the same until
// they are released, and no two Pods have the same. It is guarded by the store.
type addresses struct {
	pools map[netip.Prefix]*pool // by the first range of a node
	of    map[types.UID]lease
}

type lease struct {
	pool  *pool
	index uint32
}

// pool is the host part of the ranges of one node: a Pod has the same one in each.
type pool struct {
	ranges []netip.Prefix
	taken  map[uint32]types.UID
	last   uint32
	size   uint32
}

func newAddresses() *addresses {
	return &addresses{pools: map[netip.Prefix]*pool{}, of: map[types.UID]lease{}}
}

// take returns the addresses of a Pod, one for each range of its node.
func (a *addresses) take(uid types.UID, node *corev1.Node) ([]string, error) {
	if held, ok := a.of[uid]; ok {
		return held.pool.at(held.index), nil
	}
	p, err := a.pool(node)
	if err != nil {
		return nil, err
	}
	// The first address of a range is the network, the second its gateway, the
	// last, of IPv4, means all.
	for range p.size - 3 {
		if p.last++; p.last < 2 || p.last > p.size-2 {
			p.last = 2
		}
		if _, taken := p.taken[p.last]; !taken {
			a.hold(p, p.last, uid)
			return p.at(p.last), nil
		}
	}
	return nil, fmt.Errorf("no address is left in %s of node %s", p.ranges[0], node.Name)
}

// keep notes that a Pod has an address already: the simulation was restarted.
func (a *addresses) keep(uid types.UID, ip string, node *corev1.Node) {
	if _, ok := a.of[uid]; ok {
		return
	}
	p, err := a.pool(node)
	if err != nil {
		return
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil || !p.ranges[0].Contains(addr) {
		return
	}
	if index := hostPart(addr) - hostPart(p.ranges[0].Addr()); index < p.size {
		a.hold(p, index, uid)
	}
}

func (a *addresses) hold(p *pool, index uint32, uid types.UID) {
	p.taken[index] = uid
	a.of[uid] = lease{p, index}
}

func (a *addresses) release(uid types.UID) {
	held, ok := a.of[uid]
	if !ok {
		return
	}
	delete(a.of, uid)
	if held.pool.taken[held.index] == uid {
		delete(held.pool.taken, held.index)
	}
}

func (a *addresses) pool(node *corev1.Node) (*pool, error) {
	var ranges []netip.Prefix
	for _, cidr := range node.Spec.PodCIDRs {
		r, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("spec.podCIDRs of node %s: %w", node.Name, err)
		}
		ranges = append(ranges, r.Masked())
	}
	if len(ranges) == 0 {
		return nil, fmt.Errorf("node %s has no spec.podCIDRs", node.Name)
	}
	if p, ok := a.pools[ranges[0]]; ok {
		return p, nil
	}
	size := uint32(1 << 24) // of a /64 more than a node can ever use
	for _, r := range ranges {
		if host := r.Addr().BitLen() - r.Bits(); host < 24 {
			size = min(size, 1<<host)
		}
	}
	if size < 4 {
		return nil, fmt.Errorf("range %s of node %s has no room for a Pod", ranges[0], node.Name)
	}
	p := &pool{ranges: ranges, taken: map[uint32]types.UID{}, size: size}
	a.pools[ranges[0]] = p
	return p, nil
}

func (p *pool) at(index uint32) []string {
	out := make([]string, len(p.ranges))
	for i, r := range p.ranges {
		out[i] = plus(r.Addr(), big.NewInt(int64(index))).String()
	}
	return out
}

// hostPart returns the last 32 bits of an address.
func hostPart(a netip.Addr) uint32 {
	b := a.AsSlice()
	return binary.BigEndian.Uint32(b[len(b)-4:])
}
