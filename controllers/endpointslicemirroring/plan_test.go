// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(ips ...string) []corev1.EndpointAddress {
	var all []corev1.EndpointAddress
	for _, ip := range ips {
		all = append(all, corev1.EndpointAddress{IP: ip})
	}
	return all
}

func port(n int32) []corev1.EndpointPort {
	return []corev1.EndpointPort{{Name: fmt.Sprint("p", n), Port: n, Protocol: "TCP"}}
}

func endpointsOf(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "db", UID: "db-uid",
			Labels:      map[string]string{"team": "a"},
			Annotations: map[string]string{"note": "x", corev1.EndpointsLastChangeTriggerTime: "then", corev1.LastAppliedConfigAnnotation: "{}"},
		},
		Subsets: subsets,
	}
}

// text writes a slice as "type ports: addresses", those that are not ready in brackets.
func text(slice *discoveryv1.EndpointSlice) string {
	s := string(slice.AddressType)
	for _, p := range slice.Ports {
		s += fmt.Sprint(" ", *p.Port)
	}
	s += ":"
	for _, e := range slice.Endpoints {
		ip := strings.Join(e.Addresses, ",")
		if !*e.Conditions.Ready {
			ip = "(" + ip + ")"
		}
		s += " " + ip
	}
	return s
}

func texts(all []*discoveryv1.EndpointSlice) []string {
	var s []string
	for _, slice := range all {
		s = append(s, text(slice))
	}
	return s
}

func TestSubsetsBecomeSlices(t *testing.T) {
	for _, c := range []struct {
		name    string
		subsets []corev1.EndpointSubset
		want    []string
		skipped skipped
	}{
		{"none", nil, nil, skipped{}},
		{"ready and not", []corev1.EndpointSubset{{Addresses: at("10.0.0.1"), NotReadyAddresses: at("10.0.0.2"), Ports: port(1)}},
			[]string{"IPv4 1: 10.0.0.1 (10.0.0.2)"}, skipped{}},
		{"both families", []corev1.EndpointSubset{{Addresses: at("10.0.0.1", "fd00::1"), Ports: port(1)}},
			[]string{"IPv4 1: 10.0.0.1", "IPv6 1: fd00::1"}, skipped{}},
		{"two sets of ports", []corev1.EndpointSubset{{Addresses: at("10.0.0.1"), Ports: port(1)}, {Addresses: at("10.0.0.2"), Ports: port(2)}},
			[]string{"IPv4 1: 10.0.0.1", "IPv4 2: 10.0.0.2"}, skipped{}},
		{"the same written in two subsets", []corev1.EndpointSubset{{Addresses: at("10.0.0.1"), Ports: port(1)}, {Addresses: at("10.0.0.2", "10.0.0.1"), Ports: port(1)}},
			[]string{"IPv4 1: 10.0.0.1 10.0.0.2"}, skipped{}},
		{"what is no address", []corev1.EndpointSubset{{Addresses: at("10.0.0.1", "host.example"), Ports: port(1)}},
			[]string{"IPv4 1: 10.0.0.1"}, skipped{invalid: 1}},
		{"too many, of which the ready come first", []corev1.EndpointSubset{{Addresses: at("10.0.0.3", "10.0.0.4"), NotReadyAddresses: at("10.0.0.1", "10.0.0.2"), Ports: port(1)}},
			[]string{"IPv4 1: (10.0.0.1) 10.0.0.3 10.0.0.4"}, skipped{tooMany: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes, skipped, _ := plan(endpointsOf(c.subsets...), nil, 3)
			if have := texts(changes.Create); !slices.Equal(have, c.want) || skipped != c.skipped {
				t.Errorf("have %q, skipped %v; want %q, %v", have, skipped, c.want, c.skipped)
			}
		})
	}
}

func TestASliceHasLabelsAnnotationsAndOwnerOfItsEndpoints(t *testing.T) {
	changes, _, _ := plan(endpointsOf(corev1.EndpointSubset{Addresses: at("10.0.0.1"), Ports: port(1)}), nil, 1000)
	slice := changes.Create[0]
	if want := map[string]string{"team": "a", discoveryv1.LabelServiceName: "db", discoveryv1.LabelManagedBy: Manager}; !maps.Equal(slice.Labels, want) {
		t.Errorf("labels %v", slice.Labels)
	}
	if want := map[string]string{"note": "x"}; !maps.Equal(slice.Annotations, want) {
		t.Errorf("annotations %v", slice.Annotations)
	}
	if o := slice.OwnerReferences; len(o) != 1 || o[0].Kind != "Endpoints" || o[0].APIVersion != "v1" || o[0].UID != "db-uid" {
		t.Errorf("owner %v", o)
	}
	if slice.GenerateName != "db-" {
		t.Errorf("names begin with %q", slice.GenerateName)
	}
}

// stored gives slices names, as a server does.
func stored(all []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	for i, slice := range all {
		slice.Name, slice.GenerateName, slice.ResourceVersion = fmt.Sprint("db-", i), "", "5"
	}
	return all
}

func TestChangesOfEndpointsAreFewWrites(t *testing.T) {
	one := corev1.EndpointSubset{Addresses: at("10.0.0.1", "10.0.0.2"), Ports: port(1)}
	two := corev1.EndpointSubset{Addresses: at("10.0.0.3"), Ports: port(2)}
	for _, c := range []struct {
		name                      string
		change                    func(*corev1.Endpoints)
		creates, updates, deletes int
	}{
		{"nothing", func(*corev1.Endpoints) {}, 0, 0, 0},
		{"order alone", func(e *corev1.Endpoints) {
			e.Subsets = []corev1.EndpointSubset{two, {Addresses: at("10.0.0.2", "10.0.0.1"), Ports: port(1)}}
		}, 0, 0, 0},
		{"an annotation that is not copied", func(e *corev1.Endpoints) { e.Annotations[corev1.EndpointsLastChangeTriggerTime] = "now" }, 0, 0, 0},
		{"an annotation", func(e *corev1.Endpoints) { e.Annotations["note"] = "y" }, 0, 2, 0},
		{"a label", func(e *corev1.Endpoints) { e.Labels["team"] = "b" }, 0, 2, 0},
		{"one address", func(e *corev1.Endpoints) { e.Subsets[0].Addresses = at("10.0.0.1") }, 0, 1, 0},
		{"one that is not ready", func(e *corev1.Endpoints) {
			e.Subsets[0].Addresses, e.Subsets[0].NotReadyAddresses = at("10.0.0.1"), at("10.0.0.2")
		}, 0, 1, 0},
		{"another port takes the slice of the one that went", func(e *corev1.Endpoints) { e.Subsets[1].Ports = port(3) }, 0, 1, 0},
		{"a subset less", func(e *corev1.Endpoints) { e.Subsets = e.Subsets[:1] }, 0, 0, 1},
		{"another family cannot take a slice", func(e *corev1.Endpoints) { e.Subsets[1].Addresses = at("fd00::1") }, 1, 0, 1},
		{"others of the same name", func(e *corev1.Endpoints) { e.UID = "other" }, 0, 2, 0},
		{"others that are going", func(e *corev1.Endpoints) {
			e.DeletionTimestamp = new(metav1.Now())
			e.Subsets = append(e.Subsets, corev1.EndpointSubset{Addresses: at("10.0.0.9"), Ports: port(9)})
		}, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			first, _, _ := plan(endpointsOf(*one.DeepCopy(), *two.DeepCopy()), nil, 1000)
			existing := stored(first.Create)
			e := endpointsOf(*one.DeepCopy(), *two.DeepCopy())
			c.change(e)
			changes, _, _ := plan(e, existing, 1000)
			if len(changes.Create) != c.creates || len(changes.Update) != c.updates || len(changes.Delete) != c.deletes {
				t.Errorf("%d creates, %d updates, %d deletes", len(changes.Create), len(changes.Update), len(changes.Delete))
			}
			for _, slice := range changes.Update {
				if slice.Name == "" || slice.ResourceVersion != "5" {
					t.Errorf("an update of %q at version %q", slice.Name, slice.ResourceVersion)
				}
			}
		})
	}
}

func TestASecondSliceOfTheSameIsDeleted(t *testing.T) {
	e := endpointsOf(corev1.EndpointSubset{Addresses: at("10.0.0.1"), Ports: port(1)})
	first, _, _ := plan(e, nil, 1000)
	second, _, _ := plan(e, nil, 1000)
	existing := stored(append(first.Create, second.Create...))
	changes, _, _ := plan(e, existing, 1000)
	if changes.Count() != 1 || changes.Delete[0].Name != "db-1" {
		t.Errorf("have %v", changes)
	}
}

func TestASliceWithOneEndpointTwiceIsWritten(t *testing.T) {
	e := endpointsOf(corev1.EndpointSubset{Addresses: at("10.0.0.1", "10.0.0.2"), Ports: port(1)})
	first, _, _ := plan(e, nil, 1000)
	existing := stored(first.Create)
	existing[0].Endpoints[1] = existing[0].Endpoints[0]
	changes, _, _ := plan(e, existing, 1000)
	if len(changes.Update) != 1 || text(changes.Update[0]) != "IPv4 1: 10.0.0.1 10.0.0.2" {
		t.Errorf("have %q", texts(changes.Update))
	}
}
