// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controller/podlimits"
)

var now = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

func pod(name string, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}
}

func budget(minAvailable intstr.IntOrString) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &minAvailable, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
}

func TestPodsCountWhoseEvictionIsNotUnderWay(t *testing.T) {
	deleted := pod("deleted", true)
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	pods := []*corev1.Pod{pod("a", true), pod("b", false), pod("fresh", true), pod("kept", true), deleted}
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	c := count(pods, map[string]metav1.Time{"fresh": ago(time.Minute), "kept": ago(3 * time.Minute), "deleted": ago(time.Second), "gone": ago(0)}, now)
	if c.healthy != 2 {
		t.Errorf("%d Pods are healthy, want 2: a and kept", c.healthy)
	}
	if len(c.disrupted) != 1 || !c.disrupted["fresh"].Time.Equal(now.Add(-time.Minute)) {
		t.Errorf("disrupted are %v, want fresh", c.disrupted)
	}
	if len(c.kept) != 1 || c.kept[0].Name != "kept" {
		t.Errorf("not deleted are %v, want kept", c.kept)
	}
	if !c.recheck.Equal(now.Add(time.Minute)) {
		t.Errorf("fresh counts again at %s", c.recheck)
	}
	// The moment at which the timeout ends still protects.
	if c = count(pods[2:3], map[string]metav1.Time{"fresh": ago(deletionTimeout)}, now); c.healthy != 0 || len(c.kept) != 0 {
		t.Errorf("at the end of the timeout %d Pods are healthy, and %d are said to be kept", c.healthy, len(c.kept))
	}
}

func TestTheStatusOfABudget(t *testing.T) {
	pdb := budget(intstr.FromInt32(2))
	pdb.Generation = 7
	limits, err := podlimits.PodDisruptionBudget(pdb, 4)
	if err != nil {
		t.Fatal(err)
	}
	s := statusOf(pdb, limits, census{healthy: 3})
	if s.ObservedGeneration != 7 || s.CurrentHealthy != 3 || s.DesiredHealthy != 2 || s.ExpectedPods != 4 || s.DisruptionsAllowed != 1 {
		t.Errorf("the status is %+v", s)
	}
	c := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	if c == nil || c.Status != metav1.ConditionTrue || c.Reason != policyv1.SufficientPodsReason || c.ObservedGeneration != 7 {
		t.Errorf("the condition is %v", c)
	}
	if s = statusOf(pdb, limits, census{healthy: 2}); s.DisruptionsAllowed != 0 || s.Conditions[0].Reason != policyv1.InsufficientPodsReason {
		t.Errorf("with two healthy Pods the status is %+v", s)
	}
}

func TestABudgetThatCannotBeComputedAllowsNothingAndRecovers(t *testing.T) {
	pdb := budget(intstr.FromInt32(2))
	limits, err := podlimits.PodDisruptionBudget(pdb, 4)
	if err != nil {
		t.Fatal(err)
	}
	pdb.Status = statusOf(pdb, limits, census{healthy: 4})
	was := pdb.Status.DeepCopy()
	bad := failed(pdb, errors.New("no scale"))
	if !same(*was, pdb.Status) {
		t.Error("the status that was passed has changed")
	}
	c := bad.Conditions[0]
	if bad.DisruptionsAllowed != 0 || bad.CurrentHealthy != 4 || c.Status != metav1.ConditionFalse || c.Reason != policyv1.SyncFailedReason || c.Message != "no scale" {
		t.Errorf("the status is %+v", bad)
	}
	pdb.Status = bad
	good := statusOf(pdb, limits, census{healthy: 4})
	if c := good.Conditions[0]; good.DisruptionsAllowed != 2 || c.Reason != policyv1.SufficientPodsReason || c.Message != "" {
		t.Errorf("after the failure the status is %+v", good)
	}
}

func TestABudgetThatAllowsNothingSaysWhy(t *testing.T) {
	say := func(failure error, s policyv1.PodDisruptionBudgetStatus, c census) string {
		var all []string
		for _, reason := range reasonsOf(failure, s, c) {
			all = append(all, reason.Code+": "+reason.Sentence())
		}
		return strings.Join(all, "\n")
	}
	status := func(healthy, desired, expected, allowed int32) policyv1.PodDisruptionBudgetStatus {
		return policyv1.PodDisruptionBudgetStatus{CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected, DisruptionsAllowed: allowed}
	}
	underWay := census{disrupted: map[string]metav1.Time{"b": {}, "a": {}}, recheck: now.Add(time.Minute)}
	for _, test := range []struct{ got, want string }{
		{say(nil, status(3, 2, 4, 1), census{}), ""},
		{say(nil, status(0, 2, 0, 0), census{}), "NoPodsExpected: the budget expects no Pods"},
		{say(nil, status(2, 2, 4, 0), census{}), "BudgetUsedUp: the budget allows no eviction: 2 of its Pods are healthy, and 2 must be"},
		{say(errors.New("no scale"), status(0, 0, 0, 0), census{}), "BudgetCannotBeComputed: the budget allows no eviction, because its numbers cannot be computed: no scale"},
		{say(nil, status(3, 2, 4, 1), underWay), "EvictionUnderWay: the eviction of a, b was allowed, and the Pods are not being deleted yet: they do not count as healthy until 2026-03-02T10:01:00Z"},
	} {
		if test.got != test.want {
			t.Errorf("the reasons are %q, want %q", test.got, test.want)
		}
	}
}
