// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

// hintsText writes hints as "zones|nodes".
func hintsText(e *discoveryv1.Endpoint) string {
	if e.Hints == nil {
		return "none"
	}
	var zones, nodes []string
	for _, z := range e.Hints.ForZones {
		zones = append(zones, z.Name)
	}
	for _, n := range e.Hints.ForNodes {
		nodes = append(nodes, n.Name)
	}
	return strings.Join(zones, ",") + "|" + strings.Join(nodes, ",")
}

func TestHintsOfTrafficDistribution(t *testing.T) {
	noZone := func(m member) member { m.zone = ""; return m }
	ready := membersOf(webService(), webPod(1))[0]
	for _, c := range []struct {
		name, distribution string
		member             member
		want               string
	}{
		{"close", corev1.ServiceTrafficDistributionPreferClose, ready, "zone-node-1|"},
		{"same zone", corev1.ServiceTrafficDistributionPreferSameZone, ready, "zone-node-1|"},
		{"same node", corev1.ServiceTrafficDistributionPreferSameNode, ready, "zone-node-1|node-1"},
		{"same zone, none known", corev1.ServiceTrafficDistributionPreferSameZone, noZone(ready), "none"},
		{"same node, no zone known", corev1.ServiceTrafficDistributionPreferSameNode, noZone(ready), "|node-1"},
		{"not ready", corev1.ServiceTrafficDistributionPreferSameNode, membersOf(webService(), unready(webPod(1)))[0], "none"},
		{"terminating", corev1.ServiceTrafficDistributionPreferSameNode, membersOf(webService(), terminating(webPod(1)))[0], "none"},
		{"something new", "PreferMoon", ready, "none"},
	} {
		service := webService()
		service.Spec.TrafficDistribution = &c.distribution
		e, _ := c.member.endpoint(service, corev1.IPv4Protocol)
		e.Hints = nearby(service, &e)
		if have := hintsText(&e); have != c.want {
			t.Errorf("%s: have %s, want %s", c.name, have, c.want)
		}
	}
}

func TestWithoutTheNewPreferencesOnlyCloseCounts(t *testing.T) {
	for distribution, kept := range map[string]bool{
		corev1.ServiceTrafficDistributionPreferClose: true, corev1.ServiceTrafficDistributionPreferSameZone: false,
		corev1.ServiceTrafficDistributionPreferSameNode: false,
	} {
		service := webService()
		service.Spec.TrafficDistribution = &distribution
		if plain := withoutPreferSame(service); (plain.Spec.TrafficDistribution != nil) != kept || service.Spec.TrafficDistribution == nil {
			t.Errorf("%s: %v, want it kept: %t", distribution, plain.Spec.TrafficDistribution, kept)
		}
	}
}

func TestHintsComeAndGoWithTrafficDistribution(t *testing.T) {
	var s server
	service := webService()
	s.run(service, podsUpTo(150)...)
	service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
	check(t, "asked for", s.run(service, podsUpTo(150)...), 0, 2, 0)
	check(t, "once more", s.run(service, podsUpTo(150)...), 0, 0, 0)
	if have := hintsText(&s.slices[0].Endpoints[1]); have != "zone-node-1|" {
		t.Errorf("hints %s", have)
	}
	service.Spec.TrafficDistribution = nil
	check(t, "given up", s.run(service, podsUpTo(150)...), 0, 2, 0)
}

// inZones returns a Service that asks for its endpoints to be shared out, and a run of
// it in zones whose CPU is given.
func inZones(s *server, pods []*corev1.Pod, cpu ...int64) (writes int, notes []note) {
	service := webService()
	service.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
	var weights []weight
	for i, n := range cpu {
		weights = append(weights, weight{true, fmt.Sprint("zone-node-", i), n})
	}
	changes, notes, _ := plan(service, membersOf(service, pods...), s.slices, 100, zonesOf(weights))
	s.take(changes)
	return changes.Count(), notes
}

// shared counts endpoints by the zone that they are for.
func (s *server) shared() map[string]int {
	have := map[string]int{}
	for _, slice := range s.slices {
		for i := range slice.Endpoints {
			have[hintsText(&slice.Endpoints[i])]++
		}
	}
	return have
}

func TestEndpointsAreSharedOutByTheCPUOfZones(t *testing.T) {
	for _, c := range []struct {
		name string
		pods int // one zone after the other
		cpu  []int64
		want string
	}{
		{"equal zones", 9, []int64{1000, 1000, 1000}, "map[zone-node-0|:3 zone-node-1|:3 zone-node-2|:3]"},
		{"a larger zone", 12, []int64{2000, 1000, 1000}, "map[zone-node-0|:6 zone-node-1|:3 zone-node-2|:3]"},
		{"fewer endpoints than zones", 2, []int64{1000, 1000, 1000}, "map[none:2]"},
		{"too uneven", 3, []int64{9000, 100, 100}, "map[none:3]"},
		{"one zone", 9, []int64{1000}, "map[none:9]"},
		{"a zone without CPU", 9, []int64{1000, 1000, 0}, "map[none:9]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s server
			_, notes := inZones(&s, podsUpTo(c.pods), c.cpu...)
			if have := fmt.Sprint(s.shared()); have != c.want {
				t.Errorf("have %s, want %s", have, c.want)
			}
			if off := strings.Contains(c.want, "none"); (notes[0].disabled != "") != off {
				t.Errorf("told %q", notes[0].disabled)
			}
			if writes, _ := inZones(&s, podsUpTo(c.pods), c.cpu...); writes != 0 {
				t.Errorf("a second run has %d writes", writes)
			}
		})
	}
}

func TestAnEndpointWithoutZoneTakesAwayAllHints(t *testing.T) {
	var s server
	pods := podsUpTo(150)
	inZones(&s, pods, 1000, 1000, 1000)
	service := webService()
	service.Annotations = map[string]string{corev1.DeprecatedAnnotationTopologyAwareHints: "auto"}
	members := membersOf(service, pods...)
	members[20].zone = ""
	changes, notes, _ := plan(service, members, s.slices, 100, zonesOf([]weight{{true, "zone-node-0", 1}, {true, "zone-node-1", 1}}))
	s.take(changes)
	if have := s.shared(); have["none"] != 150 || notes[0].disabled != withoutZone {
		t.Errorf("have %v, told %q", have, notes[0].disabled)
	}
}

// Whatever the zones are: hints name zones that there are, no zone has less than what
// keeps the others from being overloaded, and a second run changes nothing.
func TestSharingOutOverRandomZones(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s server
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			pods := podsUpTo(rapid.IntRange(0, 60).Draw(t, "pods"))
			for _, p := range pods {
				p.Spec.NodeName = fmt.Sprint("node-", rapid.IntRange(0, 2).Draw(t, "zone"))
			}
			cpu := []int64{rapid.Int64Range(1, 9).Draw(t, "a"), rapid.Int64Range(1, 9).Draw(t, "b"), rapid.Int64Range(1, 9).Draw(t, "c")}
			_, notes := inZones(&s, pods, cpu...)
			have := s.shared()
			if notes[0].disabled != "" {
				if have["none"] != len(pods) {
					t.Fatalf("hints are left: %v", have)
				}
				continue
			}
			sum := 0
			for i := range cpu {
				sum += have[fmt.Sprintf("zone-node-%d|", i)]
			}
			if sum != len(pods) {
				t.Fatalf("hints %v for %d endpoints", have, len(pods))
			}
			if writes, _ := inZones(&s, pods, cpu...); writes != 0 {
				t.Fatalf("a second run has %d writes", writes)
			}
		}
	})
}

func TestEventsAboutSharing(t *testing.T) {
	var b balance
	key := object.Key{Namespace: "shop", Name: "web"}
	told := func(notes ...note) string {
		var all []string
		for _, e := range b.tell(key, notes) {
			all = append(all, e.Reason+": "+e.Note)
		}
		return strings.Join(all, "; ")
	}
	for _, step := range []struct {
		name  string
		notes []note
		want  string
	}{
		{"not requested", nil, ""},
		{"not possible", []note{{"IPv4", tooLittleKnown}}, "TopologyAwareHintsDisabled: " + tooLittleKnown + ", addressType: IPv4"},
		{"possible", []note{{"IPv4", ""}}, "TopologyAwareHintsEnabled: Topology Aware Hints has been enabled, addressType: IPv4"},
		{"still", []note{{"IPv4", ""}}, ""},
		{"given up", nil, "TopologyAwareHintsDisabled: Topology Aware Hints has been disabled"},
		{"for good", nil, ""},
	} {
		if have := told(step.notes...); have != step.want {
			t.Errorf("%s: the Events are %q, want %q", step.name, have, step.want)
		}
	}
}
