// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/wire"
)

func TestATextIsReadAndIndexedWithoutADecode(t *testing.T) {
	s := testStore()
	informer := SharedInformer[*corev1.Pod]{&informer{store: s}}
	informer.IndexText(wire.NodeName)
	informer.IndexText(wire.NodeName) // shared by all who need it
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	set(s, pod("a", "1", on("n1")), pod("b", "2", on("n2")), pod("c", "3"))
	set(s, pod("b", "4", on("n1")))
	want(t, "on n1", names(snapshot(s).WithText(wire.NodeName, "n1")), "ns/a ns/b")
	want(t, "on n2", names(snapshot(s).WithText(wire.NodeName, "n2")), "")
	want(t, "on none", names(snapshot(s).WithText(wire.NodeName, "")), "")
	for _, item := range snapshot(s).WithText(wire.NodeName, "n1") {
		if node, err := item.Text(wire.NodeName); err != nil || node != "n1" {
			t.Errorf("%s is on %q, %v", item.Key(), node, err)
		}
		if item.entry.warm.Load() != nil {
			t.Errorf("%s was decoded", item.Key())
		}
	}
	for node, n := range snapshot(s).TextValues(wire.NodeName) {
		if node != "n1" || n != 2 {
			t.Errorf("%d on %q", n, node)
		}
	}
	if _, err := (Item[*corev1.Pod]{}).Text(wire.NodeName); err == nil {
		t.Error("an item that does not exist has a text")
	}
}
