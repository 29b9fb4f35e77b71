// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeWith returns a node with one Ready condition of a status ("" is none).
func nodeWith(name string, ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
	if ready != "" {
		setCondition(node, corev1.NodeReady, ready)
	}
	return node
}

func setCondition(node *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			node.Status.Conditions[i].Status = status
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
}

func taint(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Effect: effect}
}

// texts returns taints as "key:effect".
func texts(taints []corev1.Taint) []string {
	var all []string
	for _, t := range taints {
		all = append(all, t.Key+":"+string(t.Effect))
	}
	return all
}

func TestNodesAreTaintedNoScheduleByCondition(t *testing.T) {
	const ready, unknown, no = corev1.ConditionTrue, corev1.ConditionUnknown, corev1.ConditionFalse
	for _, c := range []struct {
		name   string
		kind   corev1.NodeConditionType
		status corev1.ConditionStatus
		want   string
	}{
		{"ready", corev1.NodeReady, ready, ""},
		{"not ready", corev1.NodeReady, no, "node.kubernetes.io/not-ready"},
		{"unreachable", corev1.NodeReady, unknown, "node.kubernetes.io/unreachable"},
		{"memory is short", corev1.NodeMemoryPressure, ready, "node.kubernetes.io/memory-pressure"},
		{"memory is not short", corev1.NodeMemoryPressure, no, ""},
		{"nothing known of memory", corev1.NodeMemoryPressure, unknown, ""},
		{"disk is short", corev1.NodeDiskPressure, ready, "node.kubernetes.io/disk-pressure"},
		{"process numbers are short", corev1.NodePIDPressure, ready, "node.kubernetes.io/pid-pressure"},
		{"no network", corev1.NodeNetworkUnavailable, ready, "node.kubernetes.io/network-unavailable"},
		{"network", corev1.NodeNetworkUnavailable, no, ""},
		{"a condition of somebody else", "example.com/Haunted", ready, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := nodeWith("n", "")
			setCondition(node, c.kind, c.status)
			now := time.Unix(1000, 0)
			taints, changed := taintsOf(node, holdNoExecute, now)
			if c.want == "" {
				if changed || len(taints) != 0 {
					t.Errorf("taints %v, changed %t; want none", texts(taints), changed)
				}
				return
			}
			if got := texts(taints); !changed || !slices.Equal(got, []string{c.want + ":NoSchedule"}) {
				t.Fatalf("taints %v, changed %t; want %s:NoSchedule", got, changed, c.want)
			}
			if added := taints[0].TimeAdded; added == nil || !added.Time.Equal(now) {
				t.Errorf("time added %v, want %v", added, now)
			}
			node.Spec.Taints = taints
			if again, changed := taintsOf(node, holdNoExecute, now.Add(time.Hour)); changed {
				t.Errorf("a tainted node is tainted again: %v", texts(again))
			}
		})
	}
}

func TestTaintsAreLiftedWhenTheirConditionGoes(t *testing.T) {
	for key, kind := range map[string]corev1.NodeConditionType{
		corev1.TaintNodeMemoryPressure:     corev1.NodeMemoryPressure,
		corev1.TaintNodeDiskPressure:       corev1.NodeDiskPressure,
		corev1.TaintNodePIDPressure:        corev1.NodePIDPressure,
		corev1.TaintNodeNetworkUnavailable: corev1.NodeNetworkUnavailable,
	} {
		node := nodeWith("n", corev1.ConditionTrue, taint(key, corev1.TaintEffectNoSchedule))
		setCondition(node, kind, corev1.ConditionTrue)
		if _, changed := taintsOf(node, holdNoExecute, time.Now()); changed {
			t.Errorf("%s is touched while its condition is true", key)
		}
		setCondition(node, kind, corev1.ConditionFalse)
		if taints, changed := taintsOf(node, holdNoExecute, time.Now()); !changed || len(taints) != 0 {
			t.Errorf("%s stays after its condition went: %v", key, texts(taints))
		}
	}
}

func TestNewNodesLoseTheTaintOfAdmissionWhenTheyAreReady(t *testing.T) {
	admission := taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)
	for status, want := range map[corev1.ConditionStatus][]string{
		corev1.ConditionTrue:    nil,
		corev1.ConditionFalse:   {"node.kubernetes.io/not-ready:NoSchedule"},
		corev1.ConditionUnknown: {"node.kubernetes.io/unreachable:NoSchedule"},
	} {
		if taints, _ := taintsOf(nodeWith("n", status, admission), holdNoExecute, time.Now()); !slices.Equal(texts(taints), want) {
			t.Errorf("Ready %s: taints %v, want %v", status, texts(taints), want)
		}
	}
}

// As upstream: a node that has said nothing has no condition that calls for a
// taint, and so none is left. The scheduler's own checks need no taint then: such
// a node offers no resources.
func TestTheTaintOfANodeThatHasSaidNothingIsLifted(t *testing.T) {
	node := nodeWith("n", "", taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule))
	if taints, changed := taintsOf(node, holdNoExecute, time.Now()); !changed || len(taints) != 0 {
		t.Errorf("taints %v, changed %t; want none", texts(taints), changed)
	}
}

// Of a node without the condition nothing can be said, so what has its Pods go stays.
func TestTheNoExecuteTaintOfANodeThatHasSaidNothingStaysUntilAllAreLifted(t *testing.T) {
	node := nodeWith("n", "", taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute))
	for mode, want := range map[noExecute]bool{holdNoExecute: true, setNoExecute: true, liftNoExecute: false} {
		if taints, _ := taintsOf(node, mode, time.Now()); hasNoExecute(taints) != want {
			t.Errorf("mode %d: taints %v, want NoExecute: %t", mode, texts(taints), want)
		}
	}
}

func TestCordonedNodesAreTaintedUnschedulable(t *testing.T) {
	node := nodeWith("n", corev1.ConditionTrue)
	node.Spec.Unschedulable = true
	taints, changed := taintsOf(node, holdNoExecute, time.Now())
	if !changed || !slices.Equal(texts(taints), []string{"node.kubernetes.io/unschedulable:NoSchedule"}) {
		t.Fatalf("taints %v, changed %t", texts(taints), changed)
	}
	node.Spec.Taints, node.Spec.Unschedulable = taints, false
	if taints, changed := taintsOf(node, holdNoExecute, time.Now()); !changed || len(taints) != 0 {
		t.Errorf("uncordoned: taints %v, changed %t; want none", texts(taints), changed)
	}
}

func TestTaintsOfOthersAreNotTouched(t *testing.T) {
	node := nodeWith("n", corev1.ConditionTrue,
		taint("example.com/gpu", corev1.TaintEffectNoSchedule),
		taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
		taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectPreferNoSchedule),
		taint(corev1.TaintNodeOutOfService, corev1.TaintEffectNoExecute),
	)
	before := slices.Clone(node.Spec.Taints)
	setCondition(node, corev1.NodeDiskPressure, corev1.ConditionTrue)
	taints, _ := taintsOf(node, holdNoExecute, time.Now())
	want := []string{
		"example.com/gpu:NoSchedule",
		"node.kubernetes.io/memory-pressure:PreferNoSchedule",
		"node.kubernetes.io/out-of-service:NoExecute",
		"node.kubernetes.io/disk-pressure:NoSchedule",
	}
	if !slices.Equal(texts(taints), want) {
		t.Errorf("taints %v, want %v", texts(taints), want)
	}
	if !slices.Equal(texts(node.Spec.Taints), texts(before)) {
		t.Error("the node that was read has been changed")
	}
}

func TestLookingAtANodeThatIsAsItShouldBeAllocatesNothing(t *testing.T) {
	node := nodeWith("n", corev1.ConditionFalse, taint("example.com/gpu", corev1.TaintEffectNoSchedule),
		taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule))
	node.Labels = map[string]string{corev1.LabelOSStable: "linux", labelOSBeta: "linux"}
	if n := testing.AllocsPerRun(100, func() {
		_, differ := taintsOf(node, holdNoExecute, time.Time{})
		if differ || labelsToSet(node.Labels) != nil {
			t.Fatal("there is something to do")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
