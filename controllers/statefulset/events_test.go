// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// wantNotes compares what the Events of a reason say.
func (c *cluster) wantNotes(reason string, want ...string) {
	c.t.Helper()
	got := c.notes(reason)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		c.t.Errorf("the Events %s say %q, want %q", reason, got, want)
	}
}

// Programs and people search for these texts.
// Source: k8s.io/kubernetes/pkg/controller/statefulset, stateful_pod_control.go.
func TestEventsHaveUpstreamsTexts(t *testing.T) {
	bubble(t, func(c *cluster) {
		c.create(web(2, parallel, withClaims(retain, retain)))
		c.settle()
		c.wantNotes("SuccessfulCreate",
			"Create Claim data-web-0 Pod web-0 in StatefulSet web success", "Create Claim data-web-1 Pod web-1 in StatefulSet web success",
			"Create Pod web-0 in StatefulSet web successful", "Create Pod web-1 in StatefulSet web successful")
		c.change(replicas(1))
		c.settle()
		c.wantNotes("SuccessfulDelete", "Delete Pod web-1 in StatefulSet web successful")
		c.alter("web-0", func(p *corev1.Pod) { delete(p.Labels, appsv1.StatefulSetPodNameLabel) })
		c.wantNotes("SuccessfulUpdate", "Update Pod web-0 in StatefulSet web successful")
		if label := c.all()[0].Labels[appsv1.StatefulSetPodNameLabel]; label != "web-0" {
			t.Errorf("the label is %q", label)
		}
	})
}

func TestEventsOfFailuresHaveUpstreamsTexts(t *testing.T) {
	for _, test := range []struct {
		verb, reason, want string
		act                func(*cluster)
	}{
		{"create claim", "FailedCreate", "Create Claim data-web-1 for Pod web-1 in StatefulSet web failed error: refused by the test\n" +
			"Create Pod web-1 in StatefulSet web failed error: failed to create PVC data-web-1: refused by the test", func(c *cluster) { c.change(replicas(2)) }},
		{"create pod", "FailedCreate", "Create Pod web-1 in StatefulSet web failed error: refused by the test", func(c *cluster) { c.change(replicas(2)) }},
		{"delete pod", "FailedDelete", "Delete Pod web-0 in StatefulSet web failed error: refused by the test", func(c *cluster) { c.change(replicas(0)) }},
		{"patch pod", "FailedUpdate", "Update Pod web-0 in StatefulSet web failed error: refused by the test", func(c *cluster) {
			c.alter("web-0", func(p *corev1.Pod) { delete(p.Labels, appsv1.StatefulSetPodNameLabel) })
		}},
		{"update claim", "FailedUpdate", "Update Pod web-0 in StatefulSet web failed error: refused by the test", func(c *cluster) {
			c.change(withClaims(remove, remove))
		}},
	} {
		t.Run(test.verb, func(t *testing.T) {
			bubble(t, func(c *cluster) {
				c.create(web(1, withClaims(retain, retain)))
				c.settle()
				verb, of, _ := strings.Cut(test.verb, " ")
				resource := map[string]*fakeapi.Resource{"pod": c.pods, "claim": c.claims}[of]
				resource.Before(func(q *fakeapi.Request) *metav1.Status {
					if q.Verb == verb {
						return refusal(http.StatusForbidden, metav1.StatusReasonForbidden)
					}
					return nil
				})
				c.Forget()
				test.act(c)
				c.wantNotes(test.reason, strings.Split(test.want, "\n")...)
				managertest.Pass(time.Hour)
				n := 0
				for _, q := range resource.Requests() {
					if q.Verb == verb {
						n++
					}
				}
				if n > 30 {
					t.Errorf("in an hour there were %d requests that were refused", n)
				}
				resource.Before(nil)
			})
		})
	}
}

func TestClaimsThatAreInTheWayHaveEvents(t *testing.T) {
	t.Run("one that is being deleted", func(t *testing.T) {
		bubble(t, func(c *cluster) {
			going := claimOf(web(1), 0)
			going.DeletionTimestamp, going.Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
			if err := c.claims.Put(going); err != nil {
				t.Fatal(err)
			}
			c.create(web(1, withClaims(retain, retain)))
			c.wantNotes("FailedCreate", "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted")
			c.Forget()
			managertest.Pass(time.Hour)
			if calls := append(c.pods.Calls(), c.claims.Calls()...); len(calls) > 0 {
				t.Errorf("requests in an hour: %q", calls)
			}
			c.claims.Remove(object.KeyOf(going))
			c.settle()
			c.want("when it is gone", "web-0 web:2")
		})
	})
	t.Run("one of another controller", func(t *testing.T) {
		bubble(t, func(c *cluster) {
			theirs := claimOf(web(1), 0, metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Backup", Name: "nightly", UID: "backup", Controller: new(true)})
			if err := c.claims.Put(theirs); err != nil {
				t.Fatal(err)
			}
			c.create(web(1, withClaims(remove, remove)))
			c.settle()
			c.want("beside it", "web-0 web:2")
			c.wantNotes("ConflictingController", "PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging controller, "+
				"the retention policy is ignored for this claim")
			claim, err := fakeapi.Read[*corev1.PersistentVolumeClaim](c.claims, object.KeyOf(theirs))
			if err != nil || len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].UID != "backup" {
				t.Errorf("the claim is %v (%v)", claim, err)
			}
		})
	})
}

func TestARecreationEndsWithItsCondition(t *testing.T) {
	set := web(1, recreate)
	set.Status.Conditions = []appsv1.StatefulSetCondition{{Type: appsv1.StatefulSetProgressing, Status: corev1.ConditionTrue, Reason: recreateInProgress}}
	v := seen(set, some(set, 0, ready))
	v.options.Recreate = true
	p := decide(v)
	p.count(v, outcome{})
	c := p.status.Conditions[0]
	if len(p.status.Conditions) != 1 || c.Status != corev1.ConditionFalse || c.Reason != "RecreateCompleted" || c.Message != "All pods recreated successfully" || !c.LastTransitionTime.Time.Equal(midday) {
		t.Errorf("the conditions are %+v", p.status.Conditions)
	}
	if p.status.CurrentRevision != newRevision || p.status.CurrentReplicas != 1 {
		t.Errorf("the status is %+v", p.status)
	}
}
