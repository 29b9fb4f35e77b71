// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

func TestAnObjectIsDecodedWithoutItsSpec(t *testing.T) {
	s := testStore()
	set(s, pod("a", "1", func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase, p.Finalizers = "n1", corev1.PodRunning, []string{"example.com/f"}
		p.DeletionTimestamp = new(metav1.Unix(1, 0))
	}))
	item := snapshot(s).Get(object.Key{Namespace: "ns", Name: "a"})
	p, err := item.Without(wire.Spec)
	if err != nil || p.Name != "a" || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp == nil || len(p.Finalizers) != 1 || p.Spec.NodeName != "" {
		t.Errorf("%+v, %v", p, err)
	}
	if item.entry.decoded.Load() != nil {
		t.Error("the object without its spec counts as the object")
	}
	whole, err := item.Object()
	if err != nil || whole.Spec.NodeName != "n1" {
		t.Fatalf("%+v, %v", whole, err)
	}
	if p, err := item.Without(wire.Spec); err != nil || p != whole {
		t.Errorf("%p, %v; want the object that is decoded already, %p", p, err, whole)
	}
	if _, err := (Item[*corev1.Pod]{}).Without(wire.Spec); err == nil {
		t.Error("an item that does not exist was decoded")
	}
}

func TestATextIsReadAndIndexedWithoutADecode(t *testing.T) {
	s := testStore()
	byNode := TextIndex(informerOf(s), wire.NodeName)
	if byNode.id != TextIndex(informerOf(s), wire.NodeName).id {
		t.Error("two who need the index do not share it")
	}
	on := func(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
	set(s, pod("a", "1", on("n1")), pod("b", "2", on("n2")), pod("c", "3"))
	set(s, pod("b", "4", on("n1")))
	want(t, "on n1", names(byNode.Find("n1")), "ns/a ns/b")
	want(t, "on n2", names(byNode.Find("n2")), "")
	want(t, "on none", names(byNode.Find("")), "")
	for _, item := range byNode.Find("n1") {
		if node, err := item.Text(wire.NodeName); err != nil || node != "n1" {
			t.Errorf("%s is on %q, %v", item.Key(), node, err)
		}
		if item.entry.decoded.Load() != nil {
			t.Errorf("%s was decoded", item.Key())
		}
	}
	for node, n := range byNode.Values(snapshot(s)) {
		if node != "n1" || n != 2 {
			t.Errorf("%d on %q", n, node)
		}
	}
	if _, err := (Item[*corev1.Pod]{}).Text(wire.NodeName); err == nil {
		t.Error("an item that does not exist has a text")
	}
}
