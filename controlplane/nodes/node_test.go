// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestNodeStatusIsWrittenWhenItHasToBe(t *testing.T) {
	opts := Options{Pods: 110}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	node, err := newNode(4, opts)
	if err != nil {
		t.Fatal(err)
	}
	write := func() bool {
		status := nodeStatus(node, opts, kubeletInfo{version: "v1.36.3", port: 10250}, now)
		if status != nil {
			node.Status = *status
		}
		return status != nil
	}
	if !write() || write() {
		t.Fatal("a new Node's status is written once")
	}
	if c := node.Status.Conditions; len(c) != 4 || node.Status.NodeInfo.KubeletVersion != "v1.36.3" || len(hostIPs(node)) != 2 {
		t.Errorf("status: %+v", node.Status)
	}
	begun := now
	now = now.Add(statusReport - time.Second)
	if write() {
		t.Error("written again before it is due")
	}
	now = now.Add(time.Second)
	if !write() {
		t.Error("not written when it is due")
	}
	ready := func() *corev1.NodeCondition { return &node.Status.Conditions[3] }
	if !ready().LastHeartbeatTime.Time.Equal(now) || !ready().LastTransitionTime.Time.Equal(begun) {
		t.Errorf("a heartbeat moves the heartbeat alone; got %+v", ready())
	}

	// A node-lifecycle controller has given the Node up.
	ready().Status, ready().LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(now)
	now = now.Add(time.Second)
	if !write() || ready().Status != corev1.ConditionTrue || !ready().LastTransitionTime.Time.Equal(now) {
		t.Errorf("a Node that is there says so at once; got %+v", ready())
	}

	// Conditions of others stay.
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: "Example", Status: corev1.ConditionTrue})
	if opts.Pods = 50; !write() || len(node.Status.Conditions) != 5 || node.Status.Capacity.Pods().Value() != 50 {
		t.Errorf("after a change of options: %+v", node.Status)
	}
}

func TestANodeWithoutRangesWakesItsPodsWhenItGetsSome(t *testing.T) {
	opts, err := Options{Config: &rest.Config{}, Nodes: 1, NoPodCIDRs: true}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	node, err := newNode(0, opts)
	if err != nil || len(node.Spec.PodCIDRs) > 0 || node.Spec.PodCIDR != "" {
		t.Fatalf("the Node is created with ranges %q %q and error %v, want none", node.Spec.PodCIDR, node.Spec.PodCIDRs, err)
	}
	s := newStore()
	node.UID, node.ResourceVersion = "node", "1"
	s.putNode(node)
	for _, change := range []struct {
		ranges []string
		want   bool
	}{{nil, false}, {[]string{"10.0.0.0/24"}, true}, {[]string{"10.0.0.0/24"}, false}} {
		node = node.DeepCopy()
		version, _ := strconv.Atoi(node.ResourceVersion)
		node.ResourceVersion, node.Spec.PodCIDRs = strconv.Itoa(version+1), change.ranges
		if wakes := s.putNode(node); wakes != change.want {
			t.Errorf("with ranges %q its Pods are handled: %t, want %t", change.ranges, wakes, change.want)
		}
	}
}

func TestOnlyMarkedNodesWithOurNamesAreSimulated(t *testing.T) {
	for _, test := range []struct {
		name, label string
		want        bool
	}{
		{"node-0", "true", true},
		{"node-12", "true", true},
		{"node-0", "", false},
		{"node-0", "false", false},
		{"node-01", "true", false},
		{"node--1", "true", false},
		{"node-", "true", false},
		{"machine", "true", false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: test.name, Labels: map[string]string{ManagedLabel: test.label}}}
		if got := simulated(node); got != test.want {
			t.Errorf("%s with label %q: simulated %t, want %t", test.name, test.label, got, test.want)
		}
	}
}

func TestNodeSwitchIsSilentOrTold(t *testing.T) {
	node := &corev1.Node{}
	if is, problem := silent(node); is || problem != "" {
		t.Errorf("without annotation: %t %q", is, problem)
	}
	node.Annotations = map[string]string{NodeSwitch: Silent}
	if is, problem := silent(node); !is || problem != "" {
		t.Errorf("silent: %t %q", is, problem)
	}
	node.Annotations[NodeSwitch] = "slient"
	if is, problem := silent(node); is || problem != `annotation sim.setpoint.io/node is ignored: "slient" is not "silent"` {
		t.Errorf("misspelt: %t %q", is, problem)
	}
}
