// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
)

// What the Pods of other namespaces ask for is told to those who may get these Pods, and the names of Nodes to those who may get Nodes.
func TestRulesThatNodesFailAreShownToThoseWhoMayGetWhatDecidesThem(t *testing.T) {
	s := newSource(t)
	cores := func(n string) corev1.PodSpec {
		return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)},
		}}}}
	}
	train := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "train", UID: "train"}, Spec: cores("2")}
	train.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "web", UID: "web"}, Spec: cores("3")}
	other.Spec.NodeName = "full"
	full := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "full", UID: "full"}}
	full.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")}
	cordoned := full.DeepCopy()
	cordoned.Name, cordoned.UID, cordoned.Spec.Unschedulable = "tidied", "tidied", true
	for plural, all := range map[string][]metav1.Object{"pods": {train, other}, "nodes": {full, cordoned}} {
		for _, o := range all {
			if err := s.resource[plural].Add(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	var may func(object.Resource, object.Key) bool
	p := page.New(s, page.Options{Viewer: func(*http.Request) page.Viewer { return seer{may} }})
	for _, c := range []struct {
		who      string
		may      func(object.Resource, object.Key) bool
		has, not []string
	}{
		{
			"all", func(object.Resource, object.Key) bool { return true },
			[]string{"1 of 4 are left", "it is cordoned"},
			[]string{"Not shown"},
		},
		{
			"Nodes and the Pods of one namespace", func(r object.Resource, key object.Key) bool { return r.Kind == "Node" || key.Namespace == "shop" },
			[]string{"full", "it fails no rule by itself", "it is cordoned", "rules that depend on objects of kind Pod"},
			[]string{"are left"},
		},
		{
			"one namespace", func(_ object.Resource, key object.Key) bool { return key.Namespace == "shop" },
			[]string{"0/2 nodes are available", "which rule each Node fails: you may not get Nodes"},
			[]string{"are left", "it is cordoned", "tidied"},
		},
	} {
		may = c.may
		body := textOf(get(t, p, "/o/core/pods/shop/train").Body.String())
		for _, text := range c.has {
			if !strings.Contains(body, text) {
				t.Errorf("a user who may get %s does not see %q:\n%s", c.who, text, body)
			}
		}
		for _, text := range c.not {
			if strings.Contains(body, text) {
				t.Errorf("a user who may get %s sees %q:\n%s", c.who, text, body)
			}
		}
	}
}
