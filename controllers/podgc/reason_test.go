// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// newPod returns a Pod, changed.
func newPod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

// deletedWith has a Pod be deleted with a grace period.
func deletedWith(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: noon}, &seconds
	}
}

// held has a finalizer hold a Pod.
func held(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/wait"} }

// newNode returns a node of a Ready status ("" is none) with taints of these keys.
func newNode(name string, ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if ready != "" {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	for _, key := range taints {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
	return node
}

func TestWhyAPodGoes(t *testing.T) {
	const ready, unknown = corev1.ConditionTrue, corev1.ConditionUnknown
	up := newNode("n", ready)
	out := newNode("n", unknown, corev1.TaintNodeOutOfService)
	done := inPhase(corev1.PodSucceeded)
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		view view
		want reason
	}{
		{"it runs", newPod("p", "n"), view{node: up}, none},
		{"it is pending", newPod("p", "", inPhase(corev1.PodPending)), view{}, none},
		{"it has ended", newPod("p", "n", done), view{node: up}, none},
		{"it has ended, and was chosen", newPod("p", "n", done), view{node: up, surplus: true}, surplus},
		{"it was chosen and runs", newPod("p", "n"), view{node: up, surplus: true}, none},
		{"it has ended, was chosen, and only a finalizer holds it", newPod("p", "n", done, deletedWith(0), held), view{node: up, surplus: true}, none},

		{"its node is gone", newPod("p", "n"), view{nodeGone: true}, orphaned},
		{"it has ended and its node is gone", newPod("p", "n", done), view{nodeGone: true}, orphaned},
		{"it is being deleted and its node is gone", newPod("p", "n", deletedWith(30)), view{nodeGone: true}, orphaned},
		{"its node was gone and is back", newPod("p", "n"), view{nodeGone: true, node: up}, none},
		{"its node is missing, for how long nobody knows", newPod("p", "n"), view{}, none},

		{"it is being deleted and on no node", newPod("p", "", deletedWith(30)), view{}, unscheduled},
		{"it is deleted, on no node, and a finalizer holds it that waits for its end", newPod("p", "", deletedWith(0), held), view{}, unscheduled},
		{"that one has its end", newPod("p", "", deletedWith(0), inPhase(corev1.PodFailed), held), view{}, none},

		{"it has ended, its deletion has no grace left, and nothing holds it", newPod("p", "n", done, deletedWith(0)), view{node: up}, halfway},
		{"it runs, its deletion has no grace left, and nothing holds it", newPod("p", "n", deletedWith(0)), view{node: up}, halfway},
		{"it has ended, and its deletion has grace left", newPod("p", "n", done, deletedWith(30)), view{node: up}, none},

		{"it is being deleted on a node out of service", newPod("p", "n", deletedWith(30)), view{node: out}, outOfService},
		{"it runs on a node out of service", newPod("p", "n"), view{node: out}, none},
		{"it is being deleted on a node that is down", newPod("p", "n", deletedWith(30)), view{node: newNode("n", unknown)}, none},
		{"it is being deleted on a node that is said to be out of service and is ready", newPod("p", "n", deletedWith(30)), view{node: newNode("n", ready, corev1.TaintNodeOutOfService)}, none},
		{"it is being deleted on a node out of service that never was ready", newPod("p", "n", deletedWith(30)), view{node: newNode("n", "", corev1.TaintNodeOutOfService)}, outOfService},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(c.pod, c.view); got != c.want {
				t.Errorf("it goes because %q, want %q", got, c.want)
			}
		})
	}
}

func TestEvictedPodsGoFirstThenTheOldest(t *testing.T) {
	at := func(minutes int) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute))
		}
	}
	evictedOne := func(pod *corev1.Pod) {
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
	}
	sorted := []*corev1.Pod{
		newPod("evicted-old", "n", at(1), evictedOne),
		newPod("evicted-young", "n", at(9), evictedOne),
		newPod("a", "n", at(2), inPhase(corev1.PodFailed)),
		newPod("b", "n", at(3), inPhase(corev1.PodSucceeded)),
		newPod("c", "n", at(3), inPhase(corev1.PodSucceeded)),
		newPod("d", "n", at(4), inPhase(corev1.PodSucceeded)),
	}
	names := func(pods []*corev1.Pod) string {
		var all []string
		for _, pod := range pods {
			all = append(all, pod.Name)
		}
		return strings.Join(all, " ")
	}
	for range 20 {
		pods := slices.Clone(sorted)
		rand.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		for threshold := range len(sorted) + 2 {
			want := names(sorted[:max(0, len(sorted)-threshold)])
			if got := names(choose(pods, threshold)); got != want {
				t.Fatalf("so that %d stay %q go, want %q", threshold, got, want)
			}
		}
	}
}

func TestANodeIsInQuarantineFor40Seconds(t *testing.T) {
	q := quarantine{time: 40 * time.Second}
	look := func(after int, missing ...string) string {
		due := q.look(slices.Values(missing), noon.Add(time.Duration(after)*time.Second))
		slices.Sort(due)
		return fmt.Sprint(due)
	}
	for _, c := range []struct {
		after   int
		missing []string
		want    string
	}{
		{0, []string{"a"}, "[]"},
		{20, []string{"a", "b"}, "[]"},
		{39, []string{"a", "b"}, "[]"},
		{40, []string{"a", "b"}, "[a]"},
		{60, []string{"a", "b"}, "[a b]"},
		{80, []string{"b"}, "[b]"},
		{100, []string{"a", "b"}, "[b]"}, // a was there in between
		{140, []string{"a"}, "[a]"},
	} {
		if got := look(c.after, c.missing...); got != c.want {
			t.Errorf("after %d s with %v missing %s are due, want %s", c.after, c.missing, got, c.want)
		}
	}
	q.again("a")
	if got := look(170, "a"); got != "[]" {
		t.Errorf("anew, %s are due at once", got)
	}
}
