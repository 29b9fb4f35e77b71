// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/internal/serviceendpoints"
)

func webService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"team": "a"}},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: "TCP"}},
		},
	}
}

func webPod(n int) *corev1.Pod {
	v4 := fmt.Sprintf("10.0.%d.%d", n/250, n%250+1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", n), UID: types.UID(fmt.Sprint("uid-", n))},
		Spec:       corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{
			PodIP: v4, PodIPs: []corev1.PodIP{{IP: v4}, {IP: fmt.Sprintf("fd00::%x", n+1)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func unready(p *corev1.Pod) *corev1.Pod { p.Status.Conditions = nil; return p }

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = new(metav1.NewTime(time.Unix(1_000_000, 0)))
	return p
}

// text writes subsets as "ready / not ready : ports", addresses by the last number.
func text(subsets []corev1.EndpointSubset) string {
	s := ""
	for i, subset := range subsets {
		if i > 0 {
			s += "; "
		}
		for _, a := range subset.Addresses {
			s += a.IP + " "
		}
		s += "/"
		for _, a := range subset.NotReadyAddresses {
			s += " " + a.IP
		}
		s += ":"
		for _, p := range subset.Ports {
			s += fmt.Sprint(" ", p.Port)
		}
	}
	return s
}

func TestSubsetsOfAService(t *testing.T) {
	ended := webPod(3)
	ended.Status.Phase = corev1.PodSucceeded
	waiting := webPod(4)
	waiting.Status.PodIP, waiting.Status.PodIPs = "", nil
	named := func(pod *corev1.Pod, number int32) *corev1.Pod {
		pod.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "admin", ContainerPort: number, Protocol: "TCP"}}}}
		return pod
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.ServiceSpec)
		pods   []*corev1.Pod
		want   string
	}{
		{"ready and not", nil, []*corev1.Pod{webPod(1), unready(webPod(2)), webPod(0)}, "10.0.0.1 10.0.0.2 / 10.0.0.3: 8080"},
		{"who has ended, waits or terminates is none", nil, []*corev1.Pod{ended, waiting, terminating(webPod(5))}, ""},
		{"published whatever they are", func(s *corev1.ServiceSpec) { s.PublishNotReadyAddresses = true },
			[]*corev1.Pod{unready(webPod(0)), terminating(webPod(1)), ended, waiting}, "10.0.0.1 10.0.0.2 /: 8080"},
		{"the first family only", func(s *corev1.ServiceSpec) {
			s.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		},
			[]*corev1.Pod{webPod(0)}, "fd00::1 /: 8080"},
		{"headless without ports", func(s *corev1.ServiceSpec) { s.ClusterIP, s.Ports = corev1.ClusterIPNone, nil },
			[]*corev1.Pod{webPod(0), unready(webPod(1))}, "10.0.0.1 / 10.0.0.2:"},
		{"a named port that differs between Pods, and is missing in one", func(s *corev1.ServiceSpec) {
			s.Ports = append(s.Ports, corev1.ServicePort{Name: "admin", Port: 81, TargetPort: intstr.FromString("admin"), Protocol: "TCP"})
		}, []*corev1.Pod{named(webPod(0), 9000), named(webPod(1), 9001), webPod(2)},
			"10.0.0.1 /: 9000; 10.0.0.2 /: 9001; 10.0.0.1 10.0.0.2 10.0.0.3 /: 8080"},
		{"a named port that nobody has", func(s *corev1.ServiceSpec) { s.Ports[0].TargetPort = intstr.FromString("admin") },
			[]*corev1.Pod{webPod(0)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := webService()
			if c.change != nil {
				c.change(&service.Spec)
			}
			if have := text(desired(service, c.pods, &corev1.Endpoints{}).Subsets); have != c.want {
				t.Errorf("have %q, want %q", have, c.want)
			}
		})
	}
}

func TestAnAddressSaysItsPodNodeAndHostname(t *testing.T) {
	p := webPod(0)
	p.Spec.Hostname, p.Spec.Subdomain = "zero", "web"
	a := desired(webService(), []*corev1.Pod{p}, &corev1.Endpoints{}).Subsets[0].Addresses[0]
	if a.Hostname != "zero" || *a.NodeName != "node-1" || *a.TargetRef != (corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0", UID: "uid-0"}) {
		t.Errorf("have %v", a)
	}
}

func TestLabelsAreTheServicesAndAnnotationsOfOthersStay(t *testing.T) {
	existing := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"old": "1"}, Annotations: map[string]string{"mine": "1", corev1.EndpointsOverCapacity: truncated},
	}}
	service := webService()
	wanted := desired(service, nil, existing)
	if want := map[string]string{"team": "a", labelManagedBy: source}; !maps.Equal(wanted.Labels, want) {
		t.Errorf("labels %v, want %v", wanted.Labels, want)
	}
	if want := map[string]string{"mine": "1"}; !maps.Equal(wanted.Annotations, want) {
		t.Errorf("annotations %v, want %v", wanted.Annotations, want)
	}
	service.Spec.ClusterIP = corev1.ClusterIPNone
	if _, ok := desired(service, nil, existing).Labels[corev1.IsHeadlessService]; !ok {
		t.Error("a headless Service is not told by a label")
	}
	if len(existing.Labels) != 1 || len(existing.Annotations) != 2 {
		t.Error("what the cache holds was changed")
	}
}

func TestTheTriggerTimeIsWrittenOrTakenAway(t *testing.T) {
	e := &corev1.Endpoints{}
	stamp(e, time.Unix(1_000_000, 0))
	if a := e.Annotations[corev1.EndpointsLastChangeTriggerTime]; a != "1970-01-12T13:46:40Z" {
		t.Errorf("the trigger time is %q", a)
	}
	if stamp(e, time.Time{}); len(e.Annotations) != 0 {
		t.Errorf("without a trigger there is %v", e.Annotations)
	}
}

func TestNothingIsWrittenWhereOnlyOrderDiffers(t *testing.T) {
	service := webService()
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "admin", Port: 81, TargetPort: intstr.FromInt32(81), Protocol: "TCP"})
	wanted := desired(service, []*corev1.Pod{webPod(0), unready(webPod(1)), webPod(2)}, &corev1.Endpoints{})
	other := wanted.DeepCopy()
	s := &other.Subsets[0]
	s.Addresses[0], s.Addresses[1] = s.Addresses[1], s.Addresses[0]
	s.Ports[0], s.Ports[1] = s.Ports[1], s.Ports[0]
	s.Addresses[0].TargetRef.ResourceVersion = "7"
	other.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "then"}
	if !same(other, wanted) {
		t.Error("they are not the same")
	}
	for name, change := range map[string]func(*corev1.Endpoints){
		"an address":    func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].IP = "10.9.9.9" },
		"a node":        func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].NodeName = nil },
		"a Pod":         func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].TargetRef.UID = "other" },
		"a hostname":    func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].Hostname = "h" },
		"a port":        func(e *corev1.Endpoints) { e.Subsets[0].Ports[0].Port++ },
		"a protocol":    func(e *corev1.Endpoints) { e.Subsets[0].Ports[0].AppProtocol = new("h2c") },
		"readiness":     func(e *corev1.Endpoints) { e.Subsets[0].NotReadyAddresses = nil },
		"a label":       func(e *corev1.Endpoints) { e.Labels["x"] = "y" },
		"over capacity": func(e *corev1.Endpoints) { e.Annotations[corev1.EndpointsOverCapacity] = truncated },
	} {
		changed := other.DeepCopy()
		change(changed)
		if same(changed, wanted) {
			t.Errorf("%s is no difference", name)
		}
	}
}

func TestEndpointsAreTruncatedAt1000WithTheAnnotation(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 1500 {
		p := webPod(i)
		if i%3 == 0 {
			unready(p)
		}
		pods = append(pods, p)
	}
	count := func(e *corev1.Endpoints) (ready, notReady int) {
		for _, s := range e.Subsets {
			ready += len(s.Addresses)
			notReady += len(s.NotReadyAddresses)
		}
		return ready, notReady
	}
	for _, c := range []struct {
		pods            int
		ready, notReady int
		cut             bool
	}{{900, 600, 300, false}, {1000, 666, 334, false}, {1001, 667, 333, true}, {1500, 1000, 0, true}} {
		wanted := desired(webService(), pods[:c.pods], &corev1.Endpoints{})
		ready, notReady := count(wanted)
		if ready != c.ready || notReady != c.notReady || (wanted.Annotations[corev1.EndpointsOverCapacity] == truncated) != c.cut {
			t.Errorf("%d Pods: %d ready, %d not, annotations %v", c.pods, ready, notReady, wanted.Annotations)
		}
		if !same(wanted, desired(webService(), pods[:c.pods], wanted)) {
			t.Errorf("%d Pods: a second run would write", c.pods)
		}
	}
	all := desired(webService(), pods, &corev1.Endpoints{})
	if back := desired(webService(), pods[:10], all); back.Annotations[corev1.EndpointsOverCapacity] != "" {
		t.Error("the annotation stays")
	}
}

// Whatever there is: what is left is at most the capacity, part of what there was, with
// ready addresses before others, and no less than fits.
func TestTruncatingRandomSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		list := func(count int) []corev1.EndpointAddress {
			var all []corev1.EndpointAddress
			for range count {
				n++
				all = append(all, corev1.EndpointAddress{IP: fmt.Sprintf("a%05d", n)})
			}
			return all
		}
		var subsets []corev1.EndpointSubset
		ready, notReady := 0, 0
		for i := range rapid.IntRange(1, 5).Draw(t, "subsets") {
			a, b := rapid.IntRange(0, 700).Draw(t, "ready"), rapid.IntRange(0, 700).Draw(t, "not ready")
			subsets = append(subsets, corev1.EndpointSubset{Addresses: list(a), NotReadyAddresses: list(b), Ports: []corev1.EndpointPort{{Port: int32(i + 1)}}})
			ready, notReady = ready+a, notReady+b
		}
		left, cut := truncate(serviceendpoints.Repack(subsets))
		if cut != (ready+notReady > capacity) {
			t.Fatalf("cut is %t for %d and %d", cut, ready, notReady)
		}
		a, b := 0, 0
		for _, s := range left {
			a, b = a+len(s.Addresses), b+len(s.NotReadyAddresses)
		}
		if a != min(ready, capacity) || b != min(notReady, capacity-a) {
			t.Fatalf("of %d and %d there are %d and %d left", ready, notReady, a, b)
		}
		if again, _ := truncate(serviceendpoints.Repack(left)); !reflect.DeepEqual(again, left) {
			t.Fatal("truncating what is truncated changes it")
		}
	})
}
