// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestManagerSaysWhatIsWrongWithItsCase(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--case", "gadgets"}, `no case "gadgets" of managers; there are deployments, attach, daemonsets, disruption, everything, gc, hpa, jobs, namespace, nodes, pods20000, quota, services, start, statefulsets, volumes`},
		{[]string{"--case", "gc", "--size", "-1"}, "--size -1"},
		{[]string{"--case", "gc", "--turns", "0"}, "--turns 0"},
		{[]string{"--case", "gc", "--clients", "0"}, "--clients 0"},
	} {
		var out strings.Builder
		err := run(t.Context(), append([]string{"manager"}, c.args...), &out)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func TestCasesNameTheirControllersOnceAndMeasureWhatTheyPrint(t *testing.T) {
	for name, c := range scaleCases {
		if c.what == "" || c.size < 1 || c.measure == nil {
			t.Errorf("%s is not whole: %+v", name, c)
		}
		seen := map[string]bool{}
		for _, controller := range c.controllers {
			if seen[controller] || controller != "*" && !strings.HasSuffix(controller, "-controller") {
				t.Errorf("%s: %q is there twice, or no controller", name, controller)
			}
			seen[controller] = true
		}
		if !seen["serviceaccount-controller"] && !seen["*"] {
			t.Errorf("%s: without serviceaccount-controller no Pod can be created", name)
		}
		for _, line := range c.lines(c.size) {
			if line.plain && c.plain == nil {
				t.Errorf("%s: %s is held against plain clients, which are not measured", name, line.name)
			}
		}
	}
}

func TestCaseIsPrintedAgainstItsPeers(t *testing.T) {
	var out strings.Builder
	printCase(&out, collectCase.lines(1), map[string][]readings{
		setpointSide: {{"wall": 10, "cpu": 1, "rate": 100, "memory": 30}},
		managerSide:  {{"wall": 20, "cpu": 4, "rate": 50, "memory": 100}},
		plainSide:    {{"rate": 80}},
	}, false)
	for _, want := range []string{
		"gc-wall                                  setpoint=10.00s peer=20.00s ratio=0.50 aim=≤0.67x ok\n",
		"gc-deletes-per-second                    setpoint=100/s peer=50.00/s ratio=2.00 aim=≥1.50x ok\n",
		"gc-deletes-vs-plain-clients              setpoint=100/s peer=80.00/s ratio=1.25 aim=none told\n",
		"gc-cpu                                   setpoint=1.00s peer=4.00s ratio=0.25 aim=≤0.50x ok\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestContentsAreTwentyKindsInTurn(t *testing.T) {
	kinds, objects := map[string]bool{}, map[string]bool{}
	for i := range 60 {
		c, name := contentOf(i)
		o := c.make(fullNamespace, name)
		kinds[o.GroupVersionKind().String()] = true
		objects[o.GetKind()+o.GetName()] = true
		if o.GetNamespace() != fullNamespace || c.groupVersionResource().Resource != strings.ToLower(c.resource) {
			t.Errorf("%v is not of %s", o, c.resource)
		}
	}
	if len(kinds) != 20 || len(objects) != 60 {
		t.Errorf("%d kinds and %d objects, want 20 and 60", len(kinds), len(objects))
	}
}

func TestEachCallsForAllOnceAndEndsWithAnError(t *testing.T) {
	s := &scene{clients: 4}
	var calls [100]atomic.Int64
	if err := s.each(t.Context(), len(calls), func(_ context.Context, i int) error { calls[i].Add(1); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		if n := calls[i].Load(); n != 1 {
			t.Errorf("%d: called %d times, want once", i, n)
		}
	}
	failure := errors.New("no such luck")
	var n atomic.Int64
	err := s.each(t.Context(), 1_000_000, func(context.Context, int) error { n.Add(1); return failure })
	if !errors.Is(err, failure) || n.Load() > int64(s.clients) {
		t.Errorf("error %v after %d calls, want the first error, and no more calls than clients", err, n.Load())
	}
}

func TestConditionsAndTaintsOfNodes(t *testing.T) {
	n := &corev1.Node{}
	if readyStatus(n) != "" || unreachable(n) {
		t.Error("a Node without conditions and taints has some")
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: "False"}, {Type: corev1.NodeReady, Status: "Unknown"}}
	n.Spec.Taints = []corev1.Taint{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
	}
	if unreachable(n) {
		t.Errorf("taints of %v are not told apart", n.Spec.Taints)
	}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule})
	if readyStatus(n) != corev1.ConditionUnknown {
		t.Errorf("status %q, want Unknown", readyStatus(n))
	}
	if !unreachable(n) {
		t.Errorf("%v does not count as unreachable", n.Spec.Taints)
	}
}

func TestTheLoadOfQuotasLeavesEachNamespaceAsItWas(t *testing.T) {
	s := &scene{size: 3}
	pods, others := map[string]int{}, map[string]int{}
	count := func(i, by int) {
		namespace, _, isPod := s.counted(i)
		if isPod {
			pods[namespace] += by
		} else {
			others[namespace] += by
		}
	}
	for i := range s.size * quotaContents {
		count(i, 1)
	}
	for i := range s.churned() {
		count(s.size*quotaContents+i, 1)
		count(i, -1)
	}
	for i := range s.size {
		if n := quotaNamespace(i); pods[n] != quotaContents/2 || others[n] != quotaContents/2 {
			t.Errorf("%s has %d Pods and %d ConfigMaps, want %d each", n, pods[n], others[n], quotaContents/2)
		}
	}
}

func TestAStatusOfAQuotaIsRightAloneIfAllOfItIs(t *testing.T) {
	status := corev1.ResourceQuotaStatus{Used: corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("25"), corev1.ResourceConfigMaps: resource.MustParse("25"),
		corev1.ResourceRequestsCPU: resource.MustParse("2.5"), corev1.ResourceRequestsMemory: resource.MustParse("1600Mi"),
	}}
	if wrong := wrongQuota(&status); wrong != "" {
		t.Errorf("%s is wrong", wrong)
	}
	status.Used[corev1.ResourcePods] = resource.MustParse("26")
	if wrong := wrongQuota(&status); wrong != "26 of pods, want 25" {
		t.Errorf("%q is wrong", wrong)
	}
}

func TestEachControllerHasOneProbeAtMostAndTheFieldsOfItsManifest(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range probes {
		if seen[p.controller] || !strings.HasSuffix(p.controller, "-controller") || strings.Count(p.resource, "/") != 2 || p.shows == "" {
			t.Errorf("%s is there twice, or not whole", p.controller)
		}
		seen[p.controller] = true
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(p.manifest), &o.Object); err != nil || o.GetName() != "probe" {
			t.Errorf("%s: the object %q: %v", p.controller, o.GetName(), err)
		}
	}
}

func TestSizesOfCasesThatAreTooSmallLeaveSomethingToMeasure(t *testing.T) {
	if n := (&scene{size: 1}).churned(); n < 1 {
		t.Errorf("%d objects are created, want 1", n)
	}
	if n := smallJobs(1); n != 1 {
		t.Errorf("%d small Jobs, want 1", n)
	}
	if n := (&scene{size: 1}).budgets(); n != 1 {
		t.Errorf("%d budgets, want 1", n)
	}
}
