// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/servicetest"
)

// web6 is what a slice of IPv6 shows of Pods of both families.
func web6(n ...int) string {
	text := "IPv6 8080:"
	for _, i := range n {
		text += " " + servicetest.IP6("web", i)
	}
	return text
}

func families(policy corev1.IPFamilyPolicy, all ...corev1.IPFamily) func(*corev1.Service) {
	return func(service *corev1.Service) {
		service.Spec.Selector = map[string]string{"app": "web"}
		service.Spec.IPFamilyPolicy, service.Spec.IPFamilies = &policy, all
	}
}

func headless(service *corev1.Service) { service.Spec.ClusterIP = corev1.ClusterIPNone }

// A Pod is in the slices of the families that it has an address of and its Service
// asks for, whichever of its addresses is the first.
func TestServerASliceSetForEachFamilyOfAService(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	s.Run(theController)
	const four, six = corev1.IPv4Protocol, corev1.IPv6Protocol
	s.Pod("web", 0, servicetest.DualStack)
	s.Pod("web", 1, servicetest.DualStack, func(pod *corev1.Pod) {
		slices.Reverse(pod.Status.PodIPs)
		pod.Status.PodIP = pod.Status.PodIPs[0].IP
	})
	s.Pod("web", 2) // of IPv4 alone
	for _, c := range []struct {
		name      string
		change    []func(*corev1.Service)
		want      []string
		addresses int // of the Service, as the server gives them
	}{
		{"single", []func(*corev1.Service){families(corev1.IPFamilyPolicySingleStack)}, []string{web(0, 1, 2)}, 1},
		{"single-six", []func(*corev1.Service){families(corev1.IPFamilyPolicySingleStack, six)}, []string{web6(0, 1)}, 1},
		{"require", []func(*corev1.Service){families(corev1.IPFamilyPolicyRequireDualStack)}, []string{web(0, 1, 2), web6(0, 1)}, 2},
		{"require-six-first", []func(*corev1.Service){families(corev1.IPFamilyPolicyRequireDualStack, six, four)}, []string{web(0, 1, 2), web6(0, 1)}, 2},
		{"prefer", []func(*corev1.Service){families(corev1.IPFamilyPolicyPreferDualStack)}, []string{web(0, 1, 2), web6(0, 1)}, 2},
		{"headless", []func(*corev1.Service){families(corev1.IPFamilyPolicyRequireDualStack), headless}, []string{web(0, 1, 2), web6(0, 1)}, 1},
		{"headless-six", []func(*corev1.Service){families(corev1.IPFamilyPolicySingleStack, six), headless}, []string{web6(0, 1)}, 1},
	} {
		service := s.Service(c.name, c.change...)
		if have := service.Spec.ClusterIPs; len(have) != c.addresses {
			t.Errorf("the server gave %s the addresses %q, want %d", c.name, have, c.addresses)
		}
		s.Shows(c.name, c.name, c.want...)
	}
}

// A Service that gains a family gains slices, and loses them with it; those of the
// family that stays are not touched.
func TestServerAServiceBecomesDualStackAndSingleStackAgain(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){"with-address": func(*corev1.Service) {}, "headless": headless} {
		t.Run(name, func(t *testing.T) {
			s := servicetest.On(t, shared.Get(t))
			p := s.Run(theController)
			s.Pods("web", 0, 2, servicetest.DualStack)
			s.Service("web", families(corev1.IPFamilyPolicySingleStack), change)
			s.Shows("of one family", "web", web(0, 1))
			first := s.Slices("web")[0].UID

			servicetest.Change(s, s.Key("web"), func(service *corev1.Service) {
				service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
			})
			s.Shows("of both", "web", web(0, 1), web6(0, 1))
			servicetest.Change(s, s.Key("web-1"), servicetest.Unready, "status")
			s.Until("unready in both", func() bool {
				return !slices.ContainsFunc(s.Shown("web"), func(shown string) bool { return !strings.Contains(shown, "()") })
			})
			settled(s, "sooner") // the last answer has been counted
			before := len(writes(p, s, "web"))

			servicetest.Change(s, s.Key("web"), func(service *corev1.Service) {
				service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
				service.Spec.IPFamilies = service.Spec.IPFamilies[:1]
				if !slices.Equal(service.Spec.ClusterIPs, []string{corev1.ClusterIPNone}) {
					service.Spec.ClusterIPs = service.Spec.ClusterIPs[:1]
				}
			})
			s.Shows("of one again", "web", strings.Replace(web(0, 1), servicetest.IP("web", 1), servicetest.IP("web", 1)+"()", 1))
			settled(s, "later")
			if last := s.Slices("web")[0].UID; last != first {
				t.Error("the slice of the family that stayed is another one")
			}
			if others := writes(p, s, "web"); len(others) != before+1 || !strings.HasPrefix(others[before], "DELETE ") {
				t.Errorf("the way back took %q, want one deletion", others[before:])
			}
		})
	}
}

// An address of the second family that comes later, or goes, changes the slices of that
// family alone.
func TestServerASecondAddressOfAPodComesAndGoes(t *testing.T) {
	s := servicetest.On(t, shared.Get(t))
	p := s.Run(theController)
	s.Service("web", families(corev1.IPFamilyPolicyRequireDualStack))
	s.Pod("web", 0)
	s.Shows("one address", "web", web(0), "IPv6 :")
	settled(s, "first")
	before := len(writes(p, s, "web"))
	servicetest.Change(s, s.Key("web-0"), servicetest.DualStack, "status")
	s.Shows("two addresses", "web", web(0), web6(0))
	servicetest.Change(s, s.Key("web-0"), func(pod *corev1.Pod) { pod.Status.PodIPs = pod.Status.PodIPs[:1] }, "status")
	s.Until("one address again", func() bool {
		return !slices.ContainsFunc(s.Shown("web"), func(shown string) bool { return strings.Contains(shown, "fd00") })
	})
	settled(s, "second")
	if others := writes(p, s, "web"); len(others) != before+2 {
		t.Errorf("two changes of one family took %q", others[before:])
	}
}
