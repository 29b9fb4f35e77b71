// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceendpoints

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/object"
)

func TestTargetPorts(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{
			{Ports: []corev1.ContainerPort{{Name: "setup", ContainerPort: 1, Protocol: "TCP"}}},
			{RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Ports: []corev1.ContainerPort{{Name: "mesh", ContainerPort: 2, Protocol: "TCP"}}},
		},
		Containers: []corev1.Container{{}, {Ports: []corev1.ContainerPort{
			{Name: "dns", ContainerPort: 3, Protocol: "TCP"}, {Name: "dns", ContainerPort: 4, Protocol: "UDP"},
		}}},
	}}
	for _, c := range []struct {
		name     string
		target   intstr.IntOrString
		protocol corev1.Protocol
		want     int32
		found    bool
	}{
		{"a number", intstr.FromInt32(8080), "TCP", 8080, true},
		{"a name", intstr.FromString("dns"), "TCP", 3, true},
		{"a name of another protocol", intstr.FromString("dns"), "UDP", 4, true},
		{"the name of a sidecar's", intstr.FromString("mesh"), "TCP", 2, true},
		{"the name of an init container's", intstr.FromString("setup"), "TCP", 0, false},
		{"a name that nobody has", intstr.FromString("http"), "TCP", 0, false},
	} {
		n, found := TargetPort(p, &corev1.ServicePort{TargetPort: c.target, Protocol: c.protocol})
		if n != c.want || found != c.found {
			t.Errorf("%s: have %d, %t, want %d, %t", c.name, n, found, c.want, c.found)
		}
	}
}

func TestAddressesOfAFamilyAreWrittenInOneForm(t *testing.T) {
	p := &corev1.Pod{Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.08"}, {IP: "FD00::0001"}, {IP: "none"}}}}
	if have := Addresses(p, corev1.IPv4Protocol); !slices.Equal(have, []string{"10.0.0.8"}) {
		t.Errorf("IPv4: %v", have)
	}
	if have := Addresses(p, corev1.IPv6Protocol); !slices.Equal(have, []string{"fd00::1"}) {
		t.Errorf("IPv6: %v", have)
	}
}

func TestFamiliesOfAServiceThatDoesNotSayThem(t *testing.T) {
	for address, want := range map[string][]corev1.IPFamily{
		"10.0.0.1": {corev1.IPv4Protocol}, "fd00::1": {corev1.IPv6Protocol}, "None": {corev1.IPv4Protocol, corev1.IPv6Protocol},
	} {
		if have := Families(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: address}}); !slices.Equal(have, want) {
			t.Errorf("%s: have %v, want %v", address, have, want)
		}
	}
}

func TestTheTriggerIsTheEarliestChangeThatIsNotWritten(t *testing.T) {
	second := func(n int) time.Time { return time.Unix(int64(1_000_000+n), 0) }
	s := service("web", nil)
	s.CreationTimestamp = metav1.NewTime(second(1))
	readyAt := func(name string, n int) *corev1.Pod {
		p := pod(name, nil)
		p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(second(n))
		return p
	}
	var triggers Triggers
	for _, step := range []struct {
		name    string
		pods    []*corev1.Pod
		want    time.Time
		written bool
	}{
		{"a Service that was not known", []*corev1.Pod{readyAt("a", 5)}, second(1), true},
		{"nothing new", []*corev1.Pod{readyAt("a", 5)}, time.Time{}, true},
		{"two Pods changed", []*corev1.Pod{readyAt("a", 8), readyAt("b", 7)}, second(7), false},
		{"the same, since it was not written", []*corev1.Pod{readyAt("a", 8), readyAt("b", 7)}, second(7), true},
		{"one went", []*corev1.Pod{readyAt("a", 8)}, time.Time{}, true},
		{"it came back later", []*corev1.Pod{readyAt("a", 8), readyAt("b", 9)}, second(9), true},
	} {
		at, done := triggers.Next(s, step.pods)
		if !at.Equal(step.want) {
			t.Errorf("%s: have %v, want %v", step.name, at, step.want)
		}
		if step.written {
			done()
		}
	}
	s.CreationTimestamp = metav1.NewTime(second(20))
	if at, _ := triggers.Next(s, []*corev1.Pod{readyAt("a", 8), readyAt("b", 9)}); !at.Equal(second(20)) {
		t.Errorf("a Service made anew: %v", at)
	}
	triggers.Forget(object.KeyOf(s))
	if at, _ := triggers.Next(s, []*corev1.Pod{readyAt("a", 30)}); !at.Equal(second(20)) {
		t.Errorf("a Service that was forgotten: %v", at)
	}
}
