// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
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
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1", TerminationGracePeriodSeconds: new(int64(30))}}
		change(pod)
		return pod
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"on a node":            {pod(func(*corev1.Pod) {}), true},
		"on no node":           {pod(func(p *corev1.Pod) { p.Spec.NodeName = "" }), false},
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
