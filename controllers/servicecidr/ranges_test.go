// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecidr

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// cidr returns a ServiceCIDR of ranges. how is empty, "not ready" or "deleted".
func cidr(name, how string, ranges ...string) *networkingv1.ServiceCIDR {
	c := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
	switch how {
	case "deleted":
		c.DeletionTimestamp = new(metav1.Now())
	case "not ready":
		c.Status.Conditions = []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionFalse}}
	}
	return c
}

// address returns the IPAddress of a Service.
func address(ip string) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip, Labels: map[string]string{networkingv1.LabelManagedBy: allocator}},
		Spec:       networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "shop", Name: "web"}},
	}
}

func namesOf(addresses []*networkingv1.IPAddress) string {
	var names []string
	for _, ip := range addresses {
		names = append(names, ip.Name)
	}
	return strings.Join(names, " ")
}

func TestAnAddressHoldsTheOnlyUsableServiceCIDRThatHasIt(t *testing.T) {
	foreign := address("10.0.0.9")
	foreign.Labels = nil
	broken := address("nonsense")
	both := []string{"10.0.0.0/24", "fd00::/112"}
	for _, test := range []struct {
		name      string
		cidr      *networkingv1.ServiceCIDR
		others    []*networkingv1.ServiceCIDR
		addresses string
		want      string
	}{
		{"nothing", cidr("a", "deleted", both...), nil, "", ""},
		{"addresses", cidr("a", "deleted", both...), nil, "10.0.0.10 10.0.0.9 fd00::9", "10.0.0.9 10.0.0.10 fd00::9"},
		{"addresses of others", cidr("a", "deleted", both...), nil, "10.0.1.9 fd00:1::9", ""},
		{"the network address", cidr("a", "deleted", both...), nil, "10.0.0.0 fd00::", ""},
		{"the last address of a range", cidr("a", "deleted", both...), nil, "10.0.0.255 fd00::ffff", "fd00::ffff"},
		{"the same range", cidr("a", "deleted", both...), []*networkingv1.ServiceCIDR{cidr("b", "", both...)}, "10.0.0.9 fd00::9", ""},
		{"the same range of one family", cidr("a", "deleted", both...), []*networkingv1.ServiceCIDR{cidr("b", "", both[0])}, "10.0.0.9 fd00::9", "fd00::9"},
		{"a larger range", cidr("a", "deleted", both...), []*networkingv1.ServiceCIDR{cidr("b", "", "10.0.0.0/16", "fd00::/108")}, "10.0.0.9 fd00::9", ""},
		{"a smaller range", cidr("a", "deleted", both...), []*networkingv1.ServiceCIDR{cidr("b", "", "10.0.0.0/28")}, "10.0.0.9 10.0.0.17", "10.0.0.17"},
		{"the last address of a smaller range", cidr("a", "deleted", both...), []*networkingv1.ServiceCIDR{cidr("b", "", "10.0.0.0/28")}, "10.0.0.15", "10.0.0.15"},
		{"one that is not ready", cidr("a", "deleted", both...), []*networkingv1.ServiceCIDR{cidr("b", "not ready", both...)}, "10.0.0.9", "10.0.0.9"},
		{"one that is being deleted", cidr("a", "deleted", both...), []*networkingv1.ServiceCIDR{cidr("b", "deleted", both...)}, "10.0.0.9", "10.0.0.9"},
		{"a range that cannot be read", cidr("a", "deleted", "nonsense"), nil, "10.0.0.9", ""},
	} {
		addresses := []*networkingv1.IPAddress{foreign, broken}
		for ip := range strings.FieldsSeq(test.addresses) {
			addresses = append(addresses, address(ip))
		}
		if got := namesOf(orphans(test.cidr, append(test.others, test.cidr), addresses)); got != test.want {
			t.Errorf("%s: %q hold it, want %q", test.name, got, test.want)
		}
	}
}

// ServiceCIDRs come, are deleted and go when nothing holds them. An address that was allocated
// is in a ServiceCIDR as long as it is used.
func TestNoAddressIsLeftWithoutAServiceCIDRWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*networkingv1.ServiceCIDR
		var addresses []*networkingv1.IPAddress
		for step := range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"create", "delete", "allocate", "free", "go"}).Draw(t, "what") {
			case "create":
				bits := rapid.IntRange(26, 30).Draw(t, "bits")
				r := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 63).Draw(t, "range"))}), bits).Masked()
				how := rapid.SampledFrom([]string{"", "", "not ready"}).Draw(t, "how")
				all = append(all, cidr(fmt.Sprint("c", step), how, r.String()))
			case "delete":
				if len(all) > 0 {
					rapid.SampledFrom(all).Draw(t, "which").DeletionTimestamp = new(metav1.Now())
				}
			case "allocate":
				ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 63).Draw(t, "address"))})
				for _, c := range all {
					if usable(c) && has(c, ip) {
						addresses = append(addresses, address(ip.String()))
						break
					}
				}
			case "free":
				if len(addresses) > 0 {
					addresses = addresses[1:]
				}
			case "go":
				for i, c := range all {
					if c.DeletionTimestamp != nil && len(orphans(c, all, addresses)) == 0 {
						all = append(all[:i:i], all[i+1:]...)
						break
					}
				}
			}
			for _, ip := range addresses {
				a := netip.MustParseAddr(ip.Name)
				found := false
				for _, c := range all {
					found = found || has(c, a)
				}
				if !found {
					t.Fatalf("%s is in no ServiceCIDR", ip.Name)
				}
			}
		}
	})
}
