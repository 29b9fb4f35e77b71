// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/podwriter"
)

func TestWhichNodesFitATemplate(t *testing.T) {
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
	zone := func(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: operator, Values: values}}}
	}
	named := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}
	}
	tolerates := func(all ...corev1.Toleration) corev1.PodSpec { return corev1.PodSpec{Tolerations: all} }
	both, keeps, none := fit{run: true, stay: true}, fit{stay: true}, fit{}
	taints := func(key string, effect corev1.TaintEffect) []corev1.Taint {
		return []corev1.Taint{{Key: key, Effect: effect}}
	}
	for _, test := range []struct {
		name   string
		spec   corev1.PodSpec
		taints []corev1.Taint
		want   fit
	}{
		{"everything", corev1.PodSpec{}, nil, both},
		{"its name", corev1.PodSpec{NodeName: "node-0"}, nil, both},
		{"another name", corev1.PodSpec{NodeName: "node-1"}, nil, none},
		{"its label", corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}, nil, both},
		{"another label", corev1.PodSpec{NodeSelector: map[string]string{"zone": "b"}}, nil, none},
		{"affinity to the label", corev1.PodSpec{Affinity: required(zone(corev1.NodeSelectorOpIn, "b", "a"))}, nil, both},
		{"affinity to another label", corev1.PodSpec{Affinity: required(zone(corev1.NodeSelectorOpNotIn, "a"))}, nil, none},
		{"one of two terms", corev1.PodSpec{Affinity: required(zone(corev1.NodeSelectorOpIn, "b"), named("node-0"))}, nil, both},
		{"affinity to another node", corev1.PodSpec{Affinity: required(named("node-1"))}, nil, none},
		{"affinity, but not the selector", corev1.PodSpec{NodeSelector: map[string]string{"zone": "b"}, Affinity: required(named("node-0"))}, nil, none},
		{"an affinity that cannot be parsed", corev1.PodSpec{Affinity: required(zone("Near", "a"))}, nil, none},
		{"no term at all", corev1.PodSpec{Affinity: required()}, nil, none},
		{"a taint NoSchedule", corev1.PodSpec{}, taints("a", corev1.TaintEffectNoSchedule), keeps},
		{"a taint NoExecute", corev1.PodSpec{}, taints("a", corev1.TaintEffectNoExecute), none},
		{"a taint PreferNoSchedule", corev1.PodSpec{}, taints("a", corev1.TaintEffectPreferNoSchedule), both},
		{"a taint that is tolerated", tolerates(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}), taints("a", corev1.TaintEffectNoExecute), both},
		{"a taint with another value", tolerates(corev1.Toleration{Key: "a", Value: "x"}), taints("a", corev1.TaintEffectNoSchedule), keeps},
		{"a cordoned node", corev1.PodSpec{}, taints(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), both},
		{"a node that is not ready", corev1.PodSpec{}, taints(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute), both},
		{"a node that is not ready, for the scheduler", corev1.PodSpec{}, taints(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule), keeps},
		{"a node without a network", corev1.PodSpec{}, taints(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule), keeps},
		{"a node without a network, for its host network", corev1.PodSpec{HostNetwork: true}, taints(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule), both},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := node(0, test.taints...)
			n.Labels["zone"] = "a"
			if got := newFitting(&corev1.PodTemplateSpec{Spec: test.spec}).of(n); got != test.want {
				t.Errorf("it fits %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestAPodIsPinnedToItsNodeAndToleratesWhatDaemonsTolerate(t *testing.T) {
	set := agent()
	template := &set.Spec.Template
	template.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}}
	template.Spec.Affinity = &corev1.Affinity{
		PodAffinity: &corev1.PodAffinity{},
		NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}},
			RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}, {}}},
		},
	}
	before := template.DeepCopy()
	pod := newPod(podwriter.Owner{Object: set, Kind: kind}, template, revision{hash: "h", generation: "3"}, "node-7")
	if nodeOf(&pod.Spec) != "node-7" || pod.Spec.NodeName != "" {
		t.Errorf("it is for the node %q, and bound to %q", nodeOf(&pod.Spec), pod.Spec.NodeName)
	}
	a := pod.Spec.Affinity
	if a.PodAffinity == nil || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 || len(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) != 1 {
		t.Errorf("its affinity is %v", a)
	}
	if pod.Labels["app"] != "agent" || pod.Labels["controller-revision-hash"] != "h" || pod.Labels["pod-template-generation"] != "3" {
		t.Errorf("its labels are %v", pod.Labels)
	}
	if len(pod.Spec.Tolerations) != 6 || pod.Spec.Tolerations[0].TolerationSeconds != nil {
		t.Errorf("its tolerations are %v; want the one of the template without an end, and five others", pod.Spec.Tolerations)
	}
	if !newFitting(before).same(newFitting(template)) || len(template.Labels) != 1 || len(template.Spec.Tolerations) != 1 {
		t.Error("the template was changed")
	}
}

func TestTheNodeOfAPodIsReadFromItsAffinityUntilItIsBound(t *testing.T) {
	field := func(operator corev1.NodeSelectorOperator, values ...string) *corev1.Affinity {
		a := pinned(nil, "")
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0] = corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: operator, Values: values}
		return a
	}
	got := []string{}
	for _, spec := range []corev1.PodSpec{
		{NodeName: "bound", Affinity: pinned(nil, "pinned")},
		{Affinity: pinned(nil, "pinned")},
		{},
		{Affinity: &corev1.Affinity{}},
		{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}},
		{Affinity: field(corev1.NodeSelectorOpIn, "a", "b")},
		{Affinity: field(corev1.NodeSelectorOpNotIn, "a")},
	} {
		got = append(got, nodeOf(&spec))
	}
	if want := []string{"bound", "pinned", "", "", "", "", ""}; !slices.Equal(got, want) {
		t.Errorf("the nodes are %q, want %q", got, want)
	}
}
