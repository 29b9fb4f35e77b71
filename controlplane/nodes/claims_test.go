// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAPodWaitsForEachOfItsClaims(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "pod"}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{
		{Name: "own", ResourceClaimTemplateName: new("gpus")},
		{Name: "shared", ResourceClaimName: new("disk")},
	}
	s := newStore()
	want := func(text string) {
		t.Helper()
		if got := s.unprepared(pod); got != text {
			t.Errorf("the Pod waits because %q, want %q", got, text)
		}
	}
	claim := func(name string, owner string, allocated bool, reserved string) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		if owner != "" {
			c.OwnerReferences = []metav1.OwnerReference{{UID: pod.UID, Controller: new(owner == "pod")}}
		}
		if allocated {
			c.Status.Allocation = &resourcev1.AllocationResult{}
		}
		if reserved != "" {
			c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "train", UID: pod.UID}}
			if reserved != "pod" {
				c.Status.ReservedFor[0].UID = "other"
			}
		}
		return c
	}

	want("") // the claims are not followed
	s.withClaims()
	want("no ResourceClaim was made yet for the entry own of spec.resourceClaims")
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "own", ResourceClaimName: new("train-own")}}
	want("the ResourceClaim train-own does not exist")
	s.putClaim(claim("train-own", "", true, "pod"))
	want("the ResourceClaim train-own was not made for this Pod")
	s.putClaim(claim("train-own", "pod", false, ""))
	want("the ResourceClaim train-own is not allocated")
	s.putClaim(claim("train-own", "pod", true, "other"))
	want("the ResourceClaim train-own is not reserved for this Pod")
	s.putClaim(claim("train-own", "pod", true, "pod"))
	want("the ResourceClaim disk does not exist")
	s.putClaim(claim("disk", "", true, "pod"))
	want("")
	s.dropClaim(claim("disk", "", true, "pod"))
	want("the ResourceClaim disk does not exist")
	pod.Spec.ResourceClaims = pod.Spec.ResourceClaims[:1]
	pod.Status.ResourceClaimStatuses[0].ResourceClaimName = nil // it needs none
	want("")
}

// A claim that the Pods of a PodGroup share is reserved for the PodGroup. The kubelet may see that after
// it has seen that they are bound.
func TestAReservationWakesItsPodsAndThoseOfItsPodGroup(t *testing.T) {
	s := newStore()
	for name, group := range map[string]string{"ns/alone": "", "ns/a": "gang", "ns/b": "gang", "ns/c": "other", "away/a": "gang"} {
		namespace, name, _ := strings.Cut(name, "/")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), ResourceVersion: "1"}}
		if group != "" {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		}
		(&stages{}).trim(pod)
		s.putPod(pod)
	}
	for _, test := range []struct{ apiGroup, resource, name, want string }{
		{"", "pods", "alone", "alone"},
		{"scheduling.k8s.io", "podgroups", "gang", "a b"},
		{"scheduling.k8s.io", "podgroups", "none", ""},
		{"example.com", "gangs", "gang", ""},
	} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
		claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: test.apiGroup, Resource: test.resource, Name: test.name, UID: "u"}}
		var names []string
		for _, k := range s.podsOf(claim) {
			if k.name.Namespace != "ns" {
				t.Errorf("a claim of the namespace ns wakes %s", k.name)
			}
			names = append(names, k.name.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("a reservation for %s %s wakes the Pods %q, want %q", test.resource, test.name, got, test.want)
		}
	}
}

func TestContainersAreCreatedWhileAClaimIsWaitedForAndRunOnAfterwards(t *testing.T) {
	pod := newPod(corev1.RestartPolicyAlways)
	k := kubelet{grace: time.Second, backoff: time.Second, maxBackoff: time.Second}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(unprepared, want string) {
		t.Helper()
		does, _ := behaviorOf(pod)
		does.unprepared = unprepared
		next := k.step(pod, does, network{podIPs: []string{"10.128.0.2"}}, memo{}, now)
		if next.status != nil {
			pod.Status = *next.status
		}
		if got := summary(pod); got != want {
			t.Errorf("waiting because %q the Pod is %q, want %q", unprepared, got, want)
		}
		if !next.wake.IsZero() {
			t.Errorf("waiting because %q the Pod is looked at again at %s; an event brings the claim", unprepared, next.wake)
		}
	}
	const waits = "the ResourceClaim train-own is not allocated"
	step(waits, "Pending ContainersNotReady web=ContainerCreating")
	step("", "Running ready web=running")
	step(waits, "Running ready web=running") // a claim that is lost stops no container
}
