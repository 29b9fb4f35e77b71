// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecidr

import (
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ranges returns the ranges of a ServiceCIDR. The API server refuses what is no range.
func ranges(cidr *networkingv1.ServiceCIDR) (all []netip.Prefix) {
	for _, text := range cidr.Spec.CIDRs {
		if r, err := netip.ParsePrefix(text); err == nil {
			all = append(all, r.Masked())
		}
	}
	return all
}

// allocates reports whether addresses of a range go to Services, and address is one of them.
// Source: k8s.io/kubernetes/pkg/api/servicecidr, PrefixContainsIP.
func allocates(r netip.Prefix, address netip.Addr) bool {
	return r.Contains(address) && address != r.Addr() && (address.Is6() || address != last(r))
}

// last returns the last address of a range.
func last(r netip.Prefix) netip.Addr {
	raw := r.Addr().AsSlice()
	for bit := r.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(raw) // the length is that of an address
	return address
}

// has reports whether a ServiceCIDR allocates an address.
func has(cidr *networkingv1.ServiceCIDR, address netip.Addr) bool {
	return slices.ContainsFunc(ranges(cidr), func(r netip.Prefix) bool { return allocates(r, address) })
}

// overlap reports whether two ServiceCIDRs share addresses.
func overlap(a, b *networkingv1.ServiceCIDR) bool {
	for _, r := range ranges(a) {
		if slices.ContainsFunc(ranges(b), r.Overlaps) {
			return true
		}
	}
	return false
}

// usable reports whether API servers allocate addresses of a ServiceCIDR. One without the
// condition counts, as it does for them.
// Source: k8s.io/kubernetes/pkg/registry/core/service/ipallocator, isReady.
func usable(cidr *networkingv1.ServiceCIDR) bool {
	if cidr.DeletionTimestamp != nil {
		return false
	}
	ready := meta.FindStatusCondition(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	return ready == nil || ready.Status == metav1.ConditionTrue
}

// orphans returns the addresses that no ServiceCIDR would have without cidr, in their order.
// Other ServiceCIDRs count if they are usable.
func orphans(cidr *networkingv1.ServiceCIDR, all []*networkingv1.ServiceCIDR, addresses []*networkingv1.IPAddress) (held []*networkingv1.IPAddress) {
	others := slices.DeleteFunc(slices.Clone(all), func(other *networkingv1.ServiceCIDR) bool {
		return other.Name == cidr.Name || !usable(other) || !overlap(cidr, other)
	})
	for _, ip := range addresses {
		address, err := netip.ParseAddr(ip.Name)
		if err != nil || !allocated(ip) || !has(cidr, address) {
			continue
		}
		if !slices.ContainsFunc(others, func(other *networkingv1.ServiceCIDR) bool { return has(other, address) }) {
			held = append(held, ip)
		}
	}
	slices.SortFunc(held, func(a, b *networkingv1.IPAddress) int {
		left, _ := netip.ParseAddr(a.Name)
		right, _ := netip.ParseAddr(b.Name)
		return left.Compare(right)
	})
	return held
}

// allocator is who writes the IPAddresses of Services.
// Source: k8s.io/kubernetes/pkg/registry/core/service/ipallocator, ControllerName.
const allocator = "ipallocator.k8s.io"

// allocated reports whether an API server has allocated an address. The IPAddresses of others
// hold nothing.
func allocated(ip *networkingv1.IPAddress) bool {
	return ip.Labels[networkingv1.LabelManagedBy] == allocator
}
