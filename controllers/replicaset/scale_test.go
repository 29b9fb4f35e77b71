// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlan(t *testing.T) {
	for _, c := range []struct{ want, have, burst, plan int }{
		{3, 3, 500, 0}, {3, 0, 500, 3}, {0, 3, 500, -3}, {1000, 100, 500, 500}, {100, 1000, 500, -500}, {500, 0, 500, 500},
	} {
		if got := plan(c.want, c.have, c.burst); got != c.plan {
			t.Errorf("plan(%d, %d, %d) = %d, want %d", c.want, c.have, c.burst, got, c.plan)
		}
	}
}

func TestAPodThatIsDeletedEndsSlowlyOnANodeOrWithAFinalizer(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := goodPod("a")
		pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
		change(pod)
		return pod
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"on a node":            {pod(func(*corev1.Pod) {}), true},
		"on no node":           {pod(onNode("")), false},
		"without grace period": {pod(func(p *corev1.Pod) { *p.Spec.TerminationGracePeriodSeconds = 0 }), false},
		"with a finalizer":     {pod(func(p *corev1.Pod) { p.Spec.NodeName, p.Finalizers = "", []string{"example.com/wait"} }), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := endsSlowly(c.pod); got != c.want {
				t.Errorf("endsSlowly = %t, want %t", got, c.want)
			}
		})
	}
}

func TestCrowdsAreCountedOverAllReplicaSetsOfTheOwner(t *testing.T) {
	// Two ReplicaSets of one Deployment share node-1; the Pod there goes, though it
	// has been ready for longer.
	deployment := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop", UID: "deployment-uid", Controller: new(true)}
	run(t, func(s *server) {
		set := webSet(1)
		set.OwnerReferences = []metav1.OwnerReference{deployment}
		s.addSet(set)
		sibling := webSet(1)
		sibling.Name, sibling.UID, sibling.OwnerReferences = "api", "api-uid", set.OwnerReferences
		sibling.Spec.Selector.MatchLabels = map[string]string{"app": "api"}
		s.addSet(sibling)
		for name, node := range map[string]string{"web-a": "node-1", "web-b": "node-2", "api-a": "node-1"} {
			pod := goodPod(name)
			pod.Namespace, pod.UID = web.Namespace, ""
			pod.Labels = map[string]string{"app": name[:3]}
			owner := set
			if name == "api-a" {
				owner = sibling
			}
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, replicaSets.GroupVersionKind())}
			onNode(node)(pod)
			s.addPod(pod)
		}
	}, func(t *testing.T, s *server) {
		if asked := s.asked("pods", "delete"); len(asked) != 1 || asked[0].key.Name != "web-a" {
			t.Errorf("deleted were %v, want web-a, which shares its node", asked)
		}
	})
}
