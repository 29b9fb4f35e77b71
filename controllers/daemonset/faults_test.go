// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// count returns how many requests of a verb a resource got.
func count(r *fakeapi.Resource, verb string) (n int) {
	for _, q := range r.Requests() {
		if q.Verb == verb {
			n++
		}
	}
	return n
}

func TestACreateWhoseAnswerIsLostIsNotMadeTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.pods.LoseNext(2, "create")
		c.start()
		c.create()
		pass(time.Minute)
		c.want("after the answers were lost", "node-0=a node-1=a node-2=a")
	})
}

func TestADeleteWhoseAnswerIsLostTakesNoOtherPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.start()
		c.create()
		c.kubelets()
		c.pods.LoseNext(1, "delete")
		c.edit(image("b"))
		pass(time.Minute)
		c.want("after the answer was lost", "node-0=-a node-1=a node-2=a")
	})
}

func TestNothingIsDoneOnACacheThatDoesNotShowOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.start()
		c.create(func(set *appsv1.DaemonSet) { set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType })
		c.kubelets()
		c.pods.HoldWatches(true)
		c.put(node(3))
		for _, o := range c.allPods() {
			if o.Spec.NodeName == "" {
				t.Logf("created for the new node: %s", o.Name)
			}
		}
		before := count(c.pods, "create")
		for range 30 { // far beyond the bound of the wait for own writes
			c.put(node(4, taint(corev1.TaintEffectNoExecute)))
			c.put(node(4))
			pass(time.Minute)
		}
		// The Pod of node-4 may have been created when the run for node-3 was over. Both once.
		if n := count(c.pods, "create") - before; n > 1 {
			t.Errorf("%d Pods were created while the cache showed none of them", n)
		}
		c.pods.HoldWatches(false)
		pass(10 * time.Minute)
		c.want("at the end", "node-0=a node-1=a node-2=a node-3=a node-4=a")
	})
}

func TestAQuotaThatIsUsedUpCostsFewRequestsAndHasEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 50)
		var enough atomic.Bool
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if !enough.Load() && q.Verb == "create" {
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `pods "agent-x" is forbidden: exceeded quota: small`}
			}
			return nil
		})
		c.start()
		c.create()
		// One in each run. Besides the DaemonSet, its revision and its status start one.
		if n := count(c.pods, "create"); n > 3 {
			t.Errorf("%d requests at first, want 3 at most", n)
		}
		c.wantStatus("without Pods", 50, 0, 0, 0, 0, 50, 0)
		if notes := c.notes("FailedCreate"); len(notes) == 0 || !strings.Contains(notes[0], "exceeded quota") {
			t.Errorf("the Events say %q", notes)
		}
		enough.Store(true)
		pass(20 * time.Minute)
		c.wantStatus("with a larger quota", 50, 50, 50, 0, 0, 50, 0)
	})
}

func TestANamespaceThatTerminatesEndsTheCreatesWithoutATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 5)
		c.pods.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" {
				return &metav1.Status{
					Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "the namespace is being terminated",
					Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
				}
			}
			return nil
		})
		p := c.start()
		c.create()
		pass(time.Hour)
		if n := count(c.pods, "create"); n > 3 { // one in each run: see above
			t.Errorf("%d creates, want no retries", n)
		}
		if notes := c.notes("FailedCreate"); len(notes) != 0 {
			t.Errorf("the Events say %q", notes)
		}
		if warnings := p.Warnings(); len(warnings) != 0 {
			t.Errorf("the log says %q", warnings)
		}
	})
}

func TestAConflictKeepsWhatAnotherClientWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		condition := appsv1.DaemonSetCondition{Type: "Watched", Status: corev1.ConditionTrue}
		c.sets.Before(func(q *fakeapi.Request) *metav1.Status {
			set := c.sets.Get(agentKey)
			if q.Verb != "update" || set == nil {
				return nil
			}
			if _, found := set.Object["status"].(map[string]any)["conditions"]; found {
				return nil
			}
			if err := fakeapi.Change(c.sets, agentKey, func(set *appsv1.DaemonSet) { set.Status.Conditions = []appsv1.DaemonSetCondition{condition} }); err != nil {
				t.Error(err)
			}
			return nil
		})
		c.start()
		set := agent()
		set.Status.CollisionCount = new(int32(0)) // a status that is there
		c.put(set)
		pass(time.Minute)
		c.wantStatus("after the conflict", 1, 1, 1, 0, 0, 1, 0)
		if got := c.set().Status.Conditions; !slices.Equal(got, []appsv1.DaemonSetCondition{condition}) {
			t.Errorf("the conditions are %v", got)
		}
	})
}

func TestARolloutGoesOnAfterARestartAtAnyMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 5)
		p := c.start()
		c.create()
		c.kubelets()
		c.edit(image("b"))
		for range 12 {
			p.Kill()
			p = c.start()
			c.kubelets()
			old := 0
			for _, o := range c.allPods() {
				if o.DeletionTimestamp != nil || o.Status.Phase != corev1.PodRunning {
					old++
				}
			}
			if old > 1 {
				t.Fatalf("%d Pods are not running, and maxUnavailable is 1", old)
			}
		}
		c.want("at the end", "node-0=b node-1=b node-2=b node-3=b node-4=b")
		if n := len(c.allRevisions()); n != 2 {
			t.Errorf("there are %d revisions, want 2", n)
		}
	})
}
