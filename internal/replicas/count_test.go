// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// podReady returns a Pod that runs and says whether it is ready, and since when.
func podReady(status corev1.ConditionStatus, since metav1.Time) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: since}},
	}}
}

func readyPod(since time.Duration) *corev1.Pod {
	return podReady(corev1.ConditionTrue, metav1.NewTime(noon.Add(-since)))
}

func TestCounting(t *testing.T) {
	waiting := podReady(corev1.ConditionFalse, metav1.NewTime(noon.Add(-time.Hour)))
	unknown := podReady(corev1.ConditionTrue, metav1.Time{})
	half := readyPod(time.Hour)
	half.Labels = map[string]string{"app": "web", "tier": "back"}
	full := readyPod(time.Hour)
	full.Labels = map[string]string{"app": "web", "tier": "front", "more": "yes"}
	template := map[string]string{"app": "web", "tier": "front"}

	for _, c := range []struct {
		name     string
		pods     []*corev1.Pod
		labels   map[string]string
		minReady time.Duration
		want     counts
		next     time.Duration
	}{
		{"no Pods", nil, template, 0, counts{terminating: 2}, 0},
		{"labels", []*corev1.Pod{half, full}, template, 0, counts{2, 1, 2, 2, 2}, 0},
		{"an unready Pod", []*corev1.Pod{waiting}, nil, 0, counts{1, 1, 0, 0, 2}, 0},
		{"ready is available at once", []*corev1.Pod{readyPod(0), unknown}, nil, 0, counts{2, 2, 2, 2, 2}, 0},
		{"ready for long enough, to the moment", []*corev1.Pod{readyPod(10 * time.Second)}, nil, 10 * time.Second, counts{1, 1, 1, 1, 2}, 0},
		{"ready for less", []*corev1.Pod{readyPod(9 * time.Second)}, nil, 10 * time.Second, counts{1, 1, 1, 0, 2}, time.Second},
		{"the earliest of several", []*corev1.Pod{readyPod(2 * time.Second), readyPod(7 * time.Second), readyPod(4 * time.Second), readyPod(time.Minute), waiting},
			nil, 10 * time.Second, counts{5, 5, 4, 1, 2}, 3 * time.Second},
		{"ready since nobody knows", []*corev1.Pod{unknown}, nil, 10 * time.Second, counts{1, 1, 1, 0, 2}, 10 * time.Second},
		{"ready in the future", []*corev1.Pod{readyPod(-time.Second)}, nil, 10 * time.Second, counts{1, 1, 1, 0, 2}, 11 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, next := count(claimed{active: c.pods, terminating: 2}, c.labels, c.minReady, noon)
			if got != c.want || next != c.next {
				t.Errorf("count = %+v, next in %v; want %+v, %v", got, next, c.want, c.next)
			}
		})
	}
}
