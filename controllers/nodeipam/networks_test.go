// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
)

// describe writes pools as "network/length of a node's prefix, ranges, ranges of Services".
func describe(pools []*pool) string {
	var all []string
	for _, p := range pools {
		all = append(all, fmt.Sprintf("%s /%d %d-%d", p.network, p.bits, p.size, p.services))
	}
	return strings.Join(all, ", ")
}

func TestTheFlagsNameTheNetworksAndTheirRanges(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{ClusterCIDR: "10.244.0.0/16"}, "10.244.0.0/16 /24 256-0"},
		{Options{ClusterCIDR: " 10.244.0.0/16 "}, "10.244.0.0/16 /24 256-0"},
		{Options{ClusterCIDR: "010.244.00.0/16"}, "10.244.0.0/16 /24 256-0"},
		{Options{ClusterCIDR: "10.244.7.9/16"}, "10.244.0.0/16 /24 256-0"},
		{Options{ClusterCIDR: "10.244.0.0/16", NodeMask: 20}, "10.244.0.0/16 /20 16-0"},
		{Options{ClusterCIDR: "10.244.0.0/16", NodeMaskIPv4: 16}, "10.244.0.0/16 /16 1-0"},
		{Options{ClusterCIDR: "fd00::/56"}, "fd00::/56 /64 256-0"},
		{Options{ClusterCIDR: "fd00::/104", NodeMask: 120}, "fd00::/104 /120 65536-0"},
		{Options{ClusterCIDR: "fd00::/56", NodeMaskIPv6: 60}, "fd00::/56 /60 16-0"},
		{Options{ClusterCIDR: "10.244.0.0/16,fd00::/48"}, "10.244.0.0/16 /24 256-0, fd00::/48 /64 65536-0"},
		{Options{ClusterCIDR: "fd00::/56,10.244.0.0/16", NodeMaskIPv4: 25}, "fd00::/56 /64 256-0, 10.244.0.0/16 /25 512-0"},
		// kubeadm's defaults do not meet; those of Services may be within a network, or around it.
		{Options{ClusterCIDR: "10.244.0.0/16", ServiceClusterIPRange: "10.96.0.0/12"}, "10.244.0.0/16 /24 256-0"},
		{Options{ClusterCIDR: "10.0.0.0/8", ServiceClusterIPRange: "10.96.0.0/12"}, "10.0.0.0/8 /24 65536-4096"},
		{Options{ClusterCIDR: "10.244.0.0/16", ServiceClusterIPRange: "10.244.3.128/30"}, "10.244.0.0/16 /24 256-1"},
		{Options{ClusterCIDR: "10.96.0.0/16", ServiceClusterIPRange: "10.96.0.0/12"}, "10.96.0.0/16 /24 256-256"},
		{Options{ClusterCIDR: "10.244.0.0/16,fd00::/56", ServiceClusterIPRange: "10.244.0.0/24,fd00::/108"}, "10.244.0.0/16 /24 256-1, fd00::/56 /64 256-1"},
		{Options{ClusterCIDR: "10.244.0.0/16", ServiceClusterIPRange: "nonsense,"}, "10.244.0.0/16 /24 256-0"},
	} {
		pools, err := test.options.pools(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Errorf("%+v: %v", test.options, err)
		}
		if got := describe(pools); got != test.want {
			t.Errorf("%+v:\n%s, want\n%s", test.options, got, test.want)
		}
	}
}

func TestFlagsThatDoNotFitAreNamed(t *testing.T) {
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{}, "--allocate-node-cidrs needs --cluster-cidr"},
		{Options{ClusterCIDR: "nonsense"}, `--cluster-cidr=nonsense: "nonsense" is no network; want an address and the length of its prefix`},
		{Options{ClusterCIDR: "10.244.0.0"}, "is no network"},
		{Options{ClusterCIDR: "10.244.0.0/33"}, "is no network"},
		{Options{ClusterCIDR: "10.244.0.0/16,"}, `"" is no network`},
		{Options{ClusterCIDR: "10.244.0.0/16, fd00::/56"}, `" fd00::/56" is no network`},
		{Options{ClusterCIDR: "10.0.0.0/16,10.1.0.0/16"}, "both networks are of one family"},
		{Options{ClusterCIDR: "fd00::/56,fd01::/56"}, "both networks are of one family"},
		{Options{ClusterCIDR: "10.0.0.0/16,fd00::/56,10.1.0.0/16"}, "3 networks; want two at most"},
		{Options{ClusterCIDR: "10.244.0.0/25"}, "a node cannot have a /24 of 10.244.0.0/25: the range of a node is larger than the network"},
		{Options{ClusterCIDR: "10.244.0.0/16", NodeMask: 8}, "the range of a node is larger than the network"},
		{Options{ClusterCIDR: "10.244.0.0/16", NodeMask: -1}, "the range of a node is larger than the network"},
		{Options{ClusterCIDR: "10.244.0.0/16", NodeMask: 200}, "the longest prefix of the family is /32"},
		{Options{ClusterCIDR: "fd00::/32"}, "a node cannot have a /64 of fd00::/32: a network has 65536 ranges at most; want /48 or shorter"},
		{Options{ClusterCIDR: "fd00::/56", NodeMask: 129}, "the longest prefix of the family is /128"},
		{Options{ClusterCIDR: "10.0.0.0/16,fd00::/56", NodeMask: 24}, "with two networks, want --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6"},
		{Options{ClusterCIDR: "10.0.0.0/16", NodeMask: 24, NodeMaskIPv4: 24}, "leave it out where --node-cidr-mask-size-ipv4 or --node-cidr-mask-size-ipv6 is set"},
		{Options{ClusterCIDR: "10.0.0.0/16", NodeMaskIPv6: 64}, "--node-cidr-mask-size-ipv6=64: --cluster-cidr has no IPv6 network"},
		{Options{ClusterCIDR: "fd00::/56", NodeMaskIPv4: 24}, "--node-cidr-mask-size-ipv4=24: --cluster-cidr has no IPv4 network"},
		{Options{ClusterCIDR: "10.0.0.0/16", ServiceClusterIPRange: "a,b,c"}, "want two networks at most"},
		{Options{ClusterCIDR: "10.0.0.0/16", ServiceClusterIPRange: "10.1.0.0/16,10.2.0.0/16"}, "both networks are of one family"},
		{Options{ClusterCIDR: "10.0.0.0/16", AllocatorType: "CloudAllocator"}, "--cidr-allocator-type=CloudAllocator: want RangeAllocator"},
	} {
		pools, err := test.options.pools(slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %s, %v; want %q", test.options, describe(pools), err, test.want)
		}
	}
}

// Whatever the flags say, there is an error, or each pool has ranges of its network alone.
func FuzzTheFlagsOfNetworks(f *testing.F) {
	f.Add("10.244.0.0/16", "10.96.0.0/12", 0, 0, 0)
	f.Add("10.233.64.0/18,fd85:ee78:d8a6:8607::1:0000/112", "10.233.0.0/18", 0, 24, 120)
	f.Add("::ffff:10.0.0.0/104,0.0.0.0/0", "::/0,0.0.0.0/0", 32, -1, 1<<40)
	f.Add("010.0.0.0/08", "fe80::1%eth0/64", 8, 0, 0)
	f.Fuzz(func(t *testing.T, cluster, services string, mask, mask4, mask6 int) {
		o := Options{ClusterCIDR: cluster, ServiceClusterIPRange: services, NodeMask: mask, NodeMaskIPv4: mask4, NodeMaskIPv6: mask6}
		if networks, err := o.clusterNetworks(); err == nil {
			if masks, err := o.masks(networks); err == nil && networks[0].Addr().Is4() && masks[0]-networks[0].Bits() > 20 {
				return // as large as it was asked for, which takes its time
			}
			if len(networks) == 2 && networks[1].Addr().Is4() {
				return
			}
		}
		pools, err := o.pools(slog.New(slog.DiscardHandler))
		if (err == nil) != (len(pools) > 0) {
			t.Fatalf("%d pools and the error %v", len(pools), err)
		}
		for _, p := range pools {
			for _, number := range []int{0, p.size / 2, p.size - 1} {
				r := p.at(number)
				first, last, ok := p.span(r)
				if !ok || first != number || last != number || !p.network.Contains(r.Addr()) || r.Bits() != p.bits {
					t.Fatalf("range %d of %s is %s, which has the numbers %d to %d", number, p.network, r, first, last)
				}
			}
		}
	})
}

func TestARangeAndItsNumberBelongTogetherAcrossTheBytesOfAnAddress(t *testing.T) {
	for _, test := range []struct {
		network string
		bits    int
		number  int
		want    string
	}{
		{"10.0.0.0/8", 24, 0x1234, "10.18.52.0/24"},
		{"10.244.0.0/16", 26, 5, "10.244.1.64/26"},
		{"0.0.0.0/0", 1, 1, "128.0.0.0/1"},
		{"255.255.255.0/24", 32, 255, "255.255.255.255/32"},
		{"2001:db8::/48", 64, 0xabcd, "2001:db8:0:abcd::/64"},
		{"2001:db8::/60", 72, 0xfff, "2001:db8:0:f:ff00::/72"},
		{"fd00::/112", 128, 0xffff, "fd00::ffff/128"},
	} {
		p, err := newPool(netip.MustParsePrefix(test.network), test.bits)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.at(test.number).String(); got != test.want {
			t.Errorf("range %d of %s is %s, want %s", test.number, test.network, got, test.want)
		}
		if got := p.numberOf(netip.MustParsePrefix(test.want).Addr()); got != test.number {
			t.Errorf("%s has the number %d of %s, want %d", test.want, got, test.network, test.number)
		}
	}
}
