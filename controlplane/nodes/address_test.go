// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func nodeWithRanges(name string, cidrs ...string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: cidrs}}
}

func TestAddressesOfLivingPodsDiffer(t *testing.T) {
	a := newAddresses()
	node := nodeWithRanges("node-0", "10.0.0.0/28", "fd00::/64")
	of := map[string]types.UID{}
	for i := range 13 { // 16 without network, gateway and broadcast
		uid := types.UID(fmt.Sprint(i))
		ips, err := a.take(uid, node)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := a.take(uid, node); again[0] != ips[0] || again[1] != ips[1] {
			t.Errorf("asked again, %s has %v; before it had %v", uid, again, ips)
		}
		for _, ip := range ips {
			if other, taken := of[ip]; taken {
				t.Errorf("%s and %s have %s", uid, other, ip)
			}
			of[ip] = uid
			if !netip.MustParsePrefix("10.0.0.0/28").Contains(netip.MustParseAddr(ip)) && !strings.HasPrefix(ip, "fd00::") {
				t.Errorf("%s is in neither range", ip)
			}
		}
	}
	if ips, err := a.take("late", node); err == nil {
		t.Errorf("a full range gives %v", ips)
	}
	a.release("5")
	ips, err := a.take("late", node)
	if err != nil || of[ips[0]] != "5" {
		t.Errorf("got %v, %v; want what 5 had", ips, err)
	}
}

func TestAddressesThatPodsHaveAlreadyAreNotGivenAgain(t *testing.T) {
	a := newAddresses()
	node := nodeWithRanges("node-0", "10.0.0.0/24", "fd00::/64")
	a.keep("old", "10.0.0.2", node)
	a.keep("elsewhere", "192.168.0.2", node)
	ips, err := a.take("new", node)
	if err != nil || ips[0] != "10.0.0.3" || ips[1] != "fd00::3" {
		t.Errorf("got %v, %v", ips, err)
	}
	if ips, _ := a.take("old", node); ips[0] != "10.0.0.2" || ips[1] != "fd00::2" {
		t.Errorf("the Pod that has 10.0.0.2 is given %v", ips)
	}
}

func TestPodRangesHoldThePodsOfTheirNode(t *testing.T) {
	for _, test := range []struct {
		from       string
		node, pods int
		want       string
	}{
		{"10.128.0.0/10", 0, 110, "10.128.0.0/24"},
		{"10.128.0.0/10", 300, 110, "10.129.44.0/24"},
		{"10.128.0.0/10", MaxNodes - 1, 128, "10.191.255.0/24"},
		{"10.128.0.0/10", 1, 129, "10.128.2.0/23"},
		{"10.128.0.0/10", 1, 1000, "10.128.8.0/21"},
		{"fd5e:7a01::/48", 258, 110, "fd5e:7a01:0:102::/64"},
	} {
		got, err := podRange(netip.MustParsePrefix(test.from), test.node, test.pods)
		if err != nil || got.String() != test.want {
			t.Errorf("node %d of %s with %d Pods: got %s, %v; want %s", test.node, test.from, test.pods, got, err, test.want)
		}
	}
	if got, err := podRange(netip.MustParsePrefix("10.128.0.0/10"), MaxNodes, 110); err == nil {
		t.Errorf("node %d gets %s, which is outside", MaxNodes, got)
	}
}

func TestNodeWithoutRangesHasNoAddresses(t *testing.T) {
	for _, cidrs := range [][]string{nil, {"nonsense"}, {"10.0.0.0/31"}} {
		if ips, err := newAddresses().take("x", nodeWithRanges("node-0", cidrs...)); err == nil {
			t.Errorf("ranges %v give %v", cidrs, ips)
		}
	}
}
