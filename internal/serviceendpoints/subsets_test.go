// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func at(ip string) corev1.EndpointAddress { return corev1.EndpointAddress{IP: ip} }

func port(n int32) corev1.EndpointPort {
	return corev1.EndpointPort{Name: fmt.Sprint("p", n), Port: n, Protocol: "TCP"}
}

type (
	addresses = []corev1.EndpointAddress
	ports     = []corev1.EndpointPort
	subsets   = []corev1.EndpointSubset
)

func TestSubsetsAreRepacked(t *testing.T) {
	onPod := func(ip string, uid types.UID) corev1.EndpointAddress {
		return corev1.EndpointAddress{IP: ip, TargetRef: &corev1.ObjectReference{UID: uid}}
	}
	for _, c := range []struct {
		name     string
		in, want subsets
	}{
		{"nothing", nil, nil},
		{"no addresses", subsets{{Ports: ports{port(1)}}}, nil},
		{"one of each", subsets{{Addresses: addresses{at("b")}, Ports: ports{port(1)}}, {Addresses: addresses{at("a")}, Ports: ports{port(1)}}},
			subsets{{Addresses: addresses{at("a"), at("b")}, Ports: ports{port(1)}}}},
		{"ports of the same addresses", subsets{{Addresses: addresses{at("a")}, Ports: ports{port(2)}}, {Addresses: addresses{at("a")}, Ports: ports{port(1)}}},
			subsets{{Addresses: addresses{at("a")}, Ports: ports{port(1), port(2)}}}},
		{"ports of different addresses", subsets{{Addresses: addresses{at("a"), at("b")}, Ports: ports{port(1)}}, {Addresses: addresses{at("a")}, Ports: ports{port(2)}}},
			subsets{{Addresses: addresses{at("a"), at("b")}, Ports: ports{port(1)}}, {Addresses: addresses{at("a")}, Ports: ports{port(2)}}}},
		{"not ready wins", subsets{{Addresses: addresses{at("a")}, Ports: ports{port(1)}}, {NotReadyAddresses: addresses{at("a")}, Ports: ports{port(1)}}},
			subsets{{NotReadyAddresses: addresses{at("a")}, Ports: ports{port(1)}}}},
		{"ready for one port only", subsets{{Addresses: addresses{at("a")}, Ports: ports{port(1)}}, {NotReadyAddresses: addresses{at("a")}, Ports: ports{port(2)}}},
			subsets{{Addresses: addresses{at("a")}, Ports: ports{port(1)}}, {NotReadyAddresses: addresses{at("a")}, Ports: ports{port(2)}}}},
		{"without ports", subsets{{Addresses: addresses{at("a")}}, {Addresses: addresses{at("b")}}},
			subsets{{Addresses: addresses{at("a"), at("b")}}}},
		{"Pods that share an address", subsets{{Addresses: addresses{onPod("a", "2"), onPod("a", "1")}, Ports: ports{port(1)}}},
			subsets{{Addresses: addresses{onPod("a", "1"), onPod("a", "2")}, Ports: ports{port(1)}}}},
		{"ports that differ by protocol of the application", subsets{
			{Addresses: addresses{at("a")}, Ports: ports{{Port: 1, AppProtocol: new("h2c")}}}, {Addresses: addresses{at("b")}, Ports: ports{{Port: 1}}}},
			subsets{{Addresses: addresses{at("b")}, Ports: ports{{Port: 1}}}, {Addresses: addresses{at("a")}, Ports: ports{{Port: 1, AppProtocol: new("h2c")}}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if have := Repack(c.in); !reflect.DeepEqual(have, c.want) {
				t.Errorf("have %v, want %v", have, c.want)
			}
		})
	}
}

func TestRepackingKeepsWhoOffersWhat(t *testing.T) {
	type offered struct {
		ip   string
		port int32
	}
	read := func(t *rapid.T, all subsets, once bool) map[offered]bool {
		m := map[offered]bool{}
		for _, s := range all {
			numbers := []int32{0}
			if len(s.Ports) > 0 {
				numbers = nil
				for _, p := range s.Ports {
					numbers = append(numbers, p.Port)
				}
			}
			for _, n := range numbers {
				for i, list := range []addresses{s.Addresses, s.NotReadyAddresses} {
					for _, a := range list {
						before, known := m[offered{a.IP, n}]
						if known && once {
							t.Fatalf("%s:%d stands twice in %v", a.IP, n, all)
						}
						m[offered{a.IP, n}] = i == 0 && (!known || before)
					}
				}
			}
		}
		return m
	}
	ip := rapid.Map(rapid.SampledFrom([]string{"a", "b", "c", "d"}), at)
	gen := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) corev1.EndpointSubset {
		return corev1.EndpointSubset{
			Addresses:         rapid.SliceOfN(ip, 0, 3).Draw(t, "ready"),
			NotReadyAddresses: rapid.SliceOfN(ip, 0, 3).Draw(t, "not ready"),
			Ports:             rapid.SliceOfN(rapid.Map(rapid.Int32Range(1, 3), port), 0, 3).Draw(t, "ports"),
		}
	}), 0, 5)
	rapid.Check(t, func(t *rapid.T) {
		in := gen.Draw(t, "subsets")
		out := Repack(in)
		if have, want := read(t, out, true), read(t, in, false); !reflect.DeepEqual(have, want) {
			t.Fatalf("have %v, want %v", have, want)
		}
		if again := Repack(out); !reflect.DeepEqual(again, out) {
			t.Fatalf("repacked again: %v, before %v", again, out)
		}
		slices.Reverse(in)
		if other := Repack(in); !reflect.DeepEqual(other, out) {
			t.Fatalf("from the end: %v, before %v", other, out)
		}
	})
}
