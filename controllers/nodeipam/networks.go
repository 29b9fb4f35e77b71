// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	netutils "k8s.io/utils/net"
)

// Masks of the ranges of nodes, where no flag sets them.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app, defaultNodeMaskCIDRIPv4 and
// defaultNodeMaskCIDRIPv6.
const (
	defaultMaskIPv4 = 24
	defaultMaskIPv6 = 64
)

// pools returns the networks of Pods that the options name, without the addresses of Services.
// The rules are upstream's.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app, newNodeIpamController.
func (o *Options) pools(log *slog.Logger) ([]*pool, error) {
	if err := rangeAllocatorOnly(o.AllocatorType); err != nil {
		return nil, fmt.Errorf("--cidr-allocator-type=%s: %w", o.AllocatorType, err)
	}
	networks, err := o.clusterNetworks()
	if err != nil {
		return nil, err
	}
	masks, err := o.masks(networks)
	if err != nil {
		return nil, err
	}
	services, err := o.serviceNetworks(log)
	if err != nil {
		return nil, err
	}
	var pools []*pool
	for i, network := range networks {
		p, err := newPool(network, masks[i])
		if err != nil {
			return nil, fmt.Errorf("--cluster-cidr and --node-cidr-mask-size: %w", err)
		}
		for _, s := range services {
			free, _ := p.occupy(s)
			p.services += free
		}
		pools = append(pools, p)
	}
	return pools, nil
}

// clusterNetworks returns the one or two networks of Pods.
func (o *Options) clusterNetworks() ([]netip.Prefix, error) {
	text := strings.TrimSpace(o.ClusterCIDR)
	if text == "" {
		return nil, errors.New("--allocate-node-cidrs needs --cluster-cidr: want the network of the Pods, such as 10.244.0.0/16, or one of each family with a comma between them")
	}
	var networks []netip.Prefix
	for each := range strings.SplitSeq(text, ",") {
		network, err := parse(each)
		if err != nil {
			return nil, fmt.Errorf("--cluster-cidr=%s: %w", o.ClusterCIDR, err)
		}
		networks = append(networks, network)
	}
	switch {
	case len(networks) > 2:
		return nil, fmt.Errorf("--cluster-cidr=%s: %d networks; want two at most, one of each family", o.ClusterCIDR, len(networks))
	case len(networks) == 2 && networks[0].Addr().Is4() == networks[1].Addr().Is4():
		return nil, fmt.Errorf("--cluster-cidr=%s: both networks are of one family; want one IPv4 network and one IPv6 network", o.ClusterCIDR)
	}
	return networks, nil
}

// masks returns the lengths of the prefixes of nodes, in the order of the networks.
func (o *Options) masks(networks []netip.Prefix) ([]int, error) {
	single, onlyIPv6 := len(networks) == 1, networks[0].Addr().Is6()
	switch {
	case o.NodeMask != 0 && !single:
		return nil, fmt.Errorf("--node-cidr-mask-size=%d: with two networks, want --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6", o.NodeMask)
	case o.NodeMask != 0 && (o.NodeMaskIPv4 != 0 || o.NodeMaskIPv6 != 0):
		return nil, fmt.Errorf("--node-cidr-mask-size=%d: leave it out where --node-cidr-mask-size-ipv4 or --node-cidr-mask-size-ipv6 is set", o.NodeMask)
	case single && onlyIPv6 && o.NodeMaskIPv4 != 0:
		return nil, fmt.Errorf("--node-cidr-mask-size-ipv4=%d: --cluster-cidr has no IPv4 network", o.NodeMaskIPv4)
	case single && !onlyIPv6 && o.NodeMaskIPv6 != 0:
		return nil, fmt.Errorf("--node-cidr-mask-size-ipv6=%d: --cluster-cidr has no IPv6 network", o.NodeMaskIPv6)
	}
	var masks []int
	for _, network := range networks {
		mask, byDefault := o.NodeMaskIPv4, defaultMaskIPv4
		if network.Addr().Is6() {
			mask, byDefault = o.NodeMaskIPv6, defaultMaskIPv6
		}
		if mask == 0 {
			mask = o.NodeMask
		}
		if mask == 0 {
			mask = byDefault
		}
		masks = append(masks, mask)
	}
	return masks, nil
}

// serviceNetworks returns the networks of Services, whose addresses no node gets. As upstream
// does, it leaves out what is no network, with a warning.
func (o *Options) serviceNetworks(log *slog.Logger) ([]netip.Prefix, error) {
	if err := atMostTwo(o.ServiceClusterIPRange); err != nil {
		return nil, fmt.Errorf("--service-cluster-ip-range=%s: %w", o.ServiceClusterIPRange, err)
	}
	var networks []netip.Prefix
	for each := range strings.SplitSeq(o.ServiceClusterIPRange, ",") {
		if strings.TrimSpace(each) == "" {
			continue
		}
		network, err := parse(each)
		if err != nil {
			log.Warn("a network of --service-cluster-ip-range cannot be read; its addresses are not kept from the Nodes", "network", each, "error", err)
			continue
		}
		networks = append(networks, network)
	}
	if len(networks) == 2 && networks[0].Addr().Is4() == networks[1].Addr().Is4() {
		return nil, fmt.Errorf("--service-cluster-ip-range=%s: both networks are of one family; want one IPv4 network and one IPv6 network", o.ServiceClusterIPRange)
	}
	return networks, nil
}

// parse reads a network. It accepts leading zeros, as all components of Kubernetes do in values
// that may be stored somewhere.
func parse(text string) (netip.Prefix, error) {
	_, network, err := netutils.ParseCIDRSloppy(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no network; want an address and the length of its prefix, such as 10.244.0.0/16", text)
	}
	address, _ := netip.AddrFromSlice(network.IP) // the length is that of an address
	bits, _ := network.Mask.Size()
	return netip.PrefixFrom(address, bits), nil
}

// rangeAllocator is the only type of allocator that kube-controller-manager still has.
// Source: k8s.io/kubernetes/pkg/controller/nodeipam/ipam, RangeAllocatorType.
const rangeAllocator = "RangeAllocator"

func rangeAllocatorOnly(text string) error {
	if text != "" && text != rangeAllocator {
		return fmt.Errorf("want %s, or leave it out; allocators of cloud providers are not built in", rangeAllocator)
	}
	return nil
}

// atMostTwo checks networks of Services: one of each family.
func atMostTwo(text string) error {
	if strings.Count(text, ",") > 1 {
		return errors.New("want two networks at most, with a comma between them")
	}
	return nil
}
