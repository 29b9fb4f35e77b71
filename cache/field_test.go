// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

func TestAnInformerKnowsWhetherItSelectsAnObjectWhereItsTypeTells(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "one"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	only := &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
	custom := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "ns"},
		"spec": map[string]any{"color": "red", "size": int64(3), "on": true, "list": []any{}}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}, Reason: "Started"}
	podKind, widget := object.Ref{Kind: "Pod"}, object.Ref{Group: "example.com", Kind: "Widget"}
	for _, c := range []struct {
		selects           client.Selection
		o                 object.Object
		kind              object.Ref
		selected, certain bool
	}{
		{client.Selection{}, pod, podKind, true, true},
		{client.Selection{Namespace: "other"}, pod, podKind, false, true},
		{client.Selection{Labels: "app=web"}, pod, podKind, true, true},
		{client.Selection{Labels: "app=db"}, pod, podKind, false, true},
		{client.Selection{Labels: "app in ("}, pod, podKind, true, false},
		{client.Selection{Fields: "a=b=c"}, pod, podKind, true, false},
		{client.Selection{Fields: "metadata.name=a,metadata.namespace!=other"}, only, podKind, true, true},
		{client.Selection{Fields: "metadata.name=b"}, only, podKind, false, true},
		{client.Selection{Fields: "metadata.uid=b"}, pod, podKind, true, false},
		{client.Selection{Fields: "spec.nodeName=one"}, pod, podKind, true, true},
		{client.Selection{Fields: "spec.nodeName==two"}, pod, podKind, false, true},
		{client.Selection{Fields: "spec.nodeName!=one"}, pod, podKind, false, true},
		{client.Selection{Fields: "spec.nodeName=one"}, only, podKind, true, false},
		{client.Selection{Fields: "status.phase=Running,spec.hostNetwork=false"}, pod, podKind, true, true},
		{client.Selection{Fields: "status.podIPs=x"}, pod, podKind, true, false},
		{client.Selection{Fields: "status.podIPs=x,status.phase=Failed"}, pod, podKind, false, true},
		{client.Selection{Fields: "spec.securityContext.hostUsers=x"}, pod, podKind, true, false}, // it has none
		{client.Selection{Fields: "spec.unschedulable=true"}, node, object.Ref{Kind: "Node"}, false, true},
		{client.Selection{Fields: "spec.nodeName="}, slice, object.Ref{Group: "resource.k8s.io", Kind: "ResourceSlice"}, true, true},
		{client.Selection{Fields: "reason=Started"}, event, object.Ref{Kind: "Event"}, true, false},
		{client.Selection{Fields: "spec.color=red,spec.size=3,spec.on=true"}, custom, widget, true, true},
		{client.Selection{Fields: "spec.color=blue"}, custom, widget, false, true},
		{client.Selection{Fields: "spec.none="}, custom, widget, true, false},
		{client.Selection{Fields: "spec.list=x"}, custom, widget, true, false},
		{client.Selection{Fields: "spec.unschedulable=false"}, node, widget, true, false}, // its JSON may leave it out
	} {
		h := Handle{&informer{chosen: chosenBy(c.selects), kind: c.kind}}
		if selected, certain := h.SelectsObject(c.o); selected != c.selected || certain != c.certain {
			t.Errorf("%+v of %T: selected %v, certain %v", c.selects, c.o, selected, certain)
		}
	}
}
