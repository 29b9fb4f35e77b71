// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A change waits only if no eviction depends on it: every number but that of the healthy Pods is
// the same, and there are too few of them before and after.
func TestOnlyAChangeOnWhichNoEvictionDependsMayWait(t *testing.T) {
	status := func(healthy, desired, expected int32, change ...func(*policyv1.PodDisruptionBudgetStatus)) policyv1.PodDisruptionBudgetStatus {
		s := policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, CurrentHealthy: healthy, DesiredHealthy: desired, ExpectedPods: expected, DisruptionsAllowed: max(0, healthy-desired),
		}
		for _, f := range change {
			f(&s)
		}
		return s
	}
	for name, test := range map[string]struct {
		was, is policyv1.PodDisruptionBudgetStatus
		want    bool
	}{
		"fewer, too few before":        {status(3, 5, 8), status(2, 5, 8), true},
		"more, still too few":          {status(3, 5, 8), status(4, 5, 8), true},
		"just enough":                  {status(4, 5, 8), status(5, 5, 8), false}, // Pods that are not ready may be evicted now
		"not enough any more":          {status(5, 5, 8), status(4, 5, 8), false}, // and no longer
		"a disruption is allowed":      {status(5, 5, 8), status(6, 5, 8), false},
		"one less is allowed":          {status(8, 5, 8), status(7, 5, 8), false},
		"none is allowed any more":     {status(6, 5, 8), status(4, 5, 8), false},
		"fewer Pods are desired":       {status(3, 5, 8), status(3, 4, 8), false},
		"another number is expected":   {status(3, 5, 8), status(4, 5, 9), false},
		"the budget has been edited":   {status(3, 5, 8), status(4, 5, 8, func(s *policyv1.PodDisruptionBudgetStatus) { s.ObservedGeneration = 2 }), false},
		"a disrupted Pod is forgotten": {status(3, 5, 8, func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptedPods = map[string]metav1.Time{"a": {}} }), status(4, 5, 8), false},
		"it could not be computed": {status(3, 5, 8), status(3, 5, 8, func(s *policyv1.PodDisruptionBudgetStatus) {
			s.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason}}
		}), false},
		"too many, from what the API server allows": {status(3, 5, 8, func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptionsAllowed = 2 }), status(2, 5, 8), false},
	} {
		if got := mayWait(test.was, test.is); got != test.want {
			t.Errorf("%s: it may wait %t, want %t", name, got, test.want)
		}
	}
}

// Forty Pods that flip within a second, of a budget that has too few of them, cost a write each
// tenth of a second. The last state is written within a tenth too.
func TestWritesOfABudgetWithTooFewPodsAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromInt32(60)))
		for i := range 40 {
			c.add(pod(fmt.Sprint("p", i), true))
		}
		c.start()
		time.Sleep(time.Second)
		synctest.Wait()
		c.want("before", 40, 60, 40, 0)
		c.api.Forget()
		for i := range 40 {
			c.add(pod(fmt.Sprint("p", i), false))
			time.Sleep(25 * time.Millisecond)
		}
		time.Sleep(pause)
		synctest.Wait()
		c.want("after", 0, 60, 40, 0)
		if n := len(c.writes()); n < 2 || n > 12 {
			t.Errorf("40 changes in a second took %d writes, want 12 at most", n)
		}
	})
}

// The bound is reached and left at once.
func TestWhatAnEvictionDependsOnIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromInt32(2)), pod("a", false), pod("b", false), pod("c", false))
		c.start()
		for range 3 {
			c.add(pod("a", true))
			c.add(pod("b", true))
			c.want("with two", 2, 2, 3, 0)
			c.add(pod("c", true))
			c.want("with three", 3, 2, 3, 1)
			c.add(pod("c", false))
			c.want("with two again", 2, 2, 3, 0)
			c.add(pod("b", false))
			c.want("with one", 1, 2, 3, 0)
			c.add(pod("a", false))
		}
	})
}

// writes returns the requests that wrote a status of a budget.
func (c *cluster) writes() (all []string) {
	for _, q := range c.budgets.Requests() {
		if q.Verb == "update" && q.Subresource == "status" {
			all = append(all, q.String())
		}
	}
	return all
}
