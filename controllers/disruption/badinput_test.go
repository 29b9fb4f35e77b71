// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// ownedBy returns a ready Pod that an object controls.
func ownedBy(name, apiVersion, kind, owner string) *corev1.Pod {
	p := pod(name, true)
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner, UID: "owner", Controller: new(true)}}
	return p
}

// TestBudgetsThatCannotBeComputed has a budget of which something is wrong, and one beside it that is right.
func TestBudgetsThatCannotBeComputed(t *testing.T) {
	for _, test := range []struct {
		name    string
		spec    func(*policyv1.PodDisruptionBudgetSpec)
		owner   *corev1.Pod
		message string
		event   string
	}{
		{
			"the kind of the owner is not served", nil, ownedBy("a", "example.com/v1", "Nothing", "web"),
			"finding how many Pods the controller of Pod a wants: its controller is the Nothing web: the server serves no kind Nothing in example.com/v1",
			"CalculateExpectedPodCountFailed",
		},
		{
			"the version of the owner is not served", nil, ownedBy("a", "example.com/v9", "Rollout", "web"),
			"the server serves no kind Rollout in example.com/v9", "CalculateExpectedPodCountFailed",
		},
		{
			"the version of the owner is none", nil, ownedBy("a", "a/b/c", "Rollout", "web"), "its controller is the Rollout web", "CalculateExpectedPodCountFailed",
		},
		{
			"the owner is gone", nil, ownedBy("a", "apps/v1", "StatefulSet", "web"), "its controller, the StatefulSet web, is gone", "CalculateExpectedPodCountFailed",
		},
		{
			"the owner wants less than nothing", nil, ownedBy("a", "apps/v1", "ReplicaSet", "negative"),
			"the controller of Pod a, the ReplicaSet negative, wants -5 replicas: give it a number that is not negative, or set minAvailable to a number",
			"CalculateExpectedPodCountFailed",
		},
		{
			"the selector cannot be read", func(s *policyv1.PodDisruptionBudgetSpec) {
				s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "not a value"}}
			}, nil, "reading the label selector: values[0][app]: Invalid value", "NoPods",
		},
		{
			"the number cannot be read", func(s *policyv1.PodDisruptionBudgetSpec) { s.MinAvailable = new(intstr.FromString("many")) }, nil,
			`spec.minAvailable`, "CalculateExpectedPodCountFailed",
		},
		{
			"the percentage is too large for a number", func(s *policyv1.PodDisruptionBudgetSpec) {
				s.MinAvailable = new(intstr.FromString("99999999999999999999%"))
			}, nil, `spec.minAvailable`, "CalculateExpectedPodCountFailed",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.api.Serve(object.Resource{Group: "example.com", Version: "v1", Plural: "rollouts", Kind: "Rollout", Namespaced: true})
				c.add(&appsv1.ReplicaSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "negative", UID: "owner"}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(-5))},
				})
				bad := budget(intstr.FromString("50%"))
				if test.spec != nil {
					test.spec(&bad.Spec)
				}
				// It allowed something while it could be computed.
				bad.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 3, CurrentHealthy: 4, DesiredHealthy: 1, ExpectedPods: 4}
				right := budget(intstr.FromInt32(1))
				right.Name, right.UID = "right", "right"
				right.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "right"}}
				c.add(bad, right)
				if test.owner != nil {
					c.add(test.owner)
				}
				c.start()
				condition := meta.FindStatusCondition(c.budget("web").Status.Conditions, policyv1.DisruptionAllowedCondition)
				if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != policyv1.SyncFailedReason || !strings.Contains(condition.Message, test.message) {
					t.Errorf("the condition is %+v, want one that says %q", condition, test.message)
				}
				if n := c.budget("web").Status.DisruptionsAllowed; n != 0 {
					t.Errorf("%d disruptions are allowed", n)
				}
				notes := slices.DeleteFunc(c.notes(test.event), func(note string) bool {
					return !strings.Contains(note, strings.TrimPrefix(test.message, "reading the label selector: "))
				})
				if len(notes) != 1 {
					t.Errorf("the Events %s say %q", test.event, notes)
				}
				c.api.Forget()
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := len(c.api.Requests()); n > 80 { // the back-off ends at a minute
					t.Errorf("%d requests in an hour", n)
				}
				for _, q := range c.api.Requests() {
					if q.Key.Name == "web" && q.Verb == "update" {
						t.Errorf("a status that says the same was written again: %s", q.String())
					}
				}
				for _, name := range []string{"r1", "r2"} {
					p := pod(name, true)
					p.Labels = map[string]string{"app": "right"}
					c.add(p)
				}
				if s := c.budget("right").Status; s.DisruptionsAllowed != 1 {
					t.Errorf("the budget beside it has the status %+v", s)
				}
			})
		})
	}
}

func TestEvictionsOfPodsThatDoNotExistAndOfNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.add(budget(intstr.FromInt32(1)), pod("a", true), pod("b", true))
		c.start()
		evicted := c.budget("web")
		evicted.Status.DisruptedPods = map[string]metav1.Time{"nobody": metav1.Now(), "a": {}}
		if _, err := client.For[*policyv1.PodDisruptionBudget](c.client).UpdateStatus(t.Context(), evicted); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.want("with evictions that are none", 2, 1, 2, 1)
		if left := c.budget("web").Status.DisruptedPods; len(left) != 0 {
			t.Errorf("the status has the evictions %v", left)
		}
	})
}
