// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var rollouts = object.Resource{Group: "budgets.example.com", Version: "v1", Plural: "rollouts", Kind: "Rollout", Namespaced: true}

// TestTheSizeOfACustomKindCountsUnlessItIsNone is with the scale that the real API server makes of
// objects of a custom kind, whose schema allows any size, and none. The server refuses those that are negative or no number.
func TestTheSizeOfACustomKindCountsUnlessItIsNone(t *testing.T) {
	cluster := shared.Get(t)
	cluster.DefineScaled(t, rollouts)
	t.Cleanup(func() { cluster.Undefine(t, rollouts) })
	namespace := cluster.Namespace(t)
	apply := func(spec string) (made metav1.PartialObjectMetadata) {
		t.Helper()
		body := fmt.Sprintf(`{"apiVersion":"budgets.example.com/v1","kind":"Rollout","metadata":{"name":"web"},"spec":%s}`, spec)
		answer, err := cluster.Client.Request(http.MethodPatch).Resource(rollouts).Namespace(namespace).Name("web").
			Param("fieldManager", "test").Param("force", "true").Body("application/apply-patch+yaml", []byte(body)).Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer.Body, &made); err != nil {
			t.Fatal(err)
		}
		return made
	}
	owner := apply(`{"replicas":8}`)
	by := metav1.OwnerReference{APIVersion: "budgets.example.com/v1", Kind: "Rollout", Name: "web", UID: owner.UID, Controller: new(true)}
	p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	pdb := budget(intstr.FromInt32(0))
	pdb.Namespace, pdb.Generation = namespace, 0
	pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable = nil, new(intstr.FromString("25%"))
	if _, err := client.For[*policyv1.PodDisruptionBudget](cluster.Client).Create(t.Context(), pdb); err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		newReady(t, cluster.Client, namespace, fmt.Sprint("p", i), by)
	}
	key := object.Key{Namespace: namespace, Name: "web"}
	controlplanetest.Await(t, p, key, "a quarter of 8 may be unavailable", func(pdb *policyv1.PodDisruptionBudget) bool {
		s := pdb.Status
		return s.ExpectedPods == 8 && s.DesiredHealthy == 6 && s.CurrentHealthy == 7 && s.DisruptionsAllowed == 1
	})
	apply(`{}`)
	// The budget counts again when a Pod goes, which is sooner than by itself.
	if err := client.For[*corev1.Pod](cluster.Client).Delete(t.Context(), object.Key{Namespace: namespace, Name: "p0"}); err != nil {
		t.Fatal(err)
	}
	controlplanetest.Await(t, p, key, "that there is no size is said", func(pdb *policyv1.PodDisruptionBudget) bool {
		c := meta.FindStatusCondition(pdb.Status.Conditions, policyv1.DisruptionAllowedCondition)
		return pdb.Status.DisruptionsAllowed == 0 && c != nil && c.Reason == policyv1.SyncFailedReason &&
			strings.Contains(c.Message, "reading the scale of its controller, the Rollout web: ")
	})
	apply(`{"replicas":4}`)
	controlplanetest.Await(t, p, key, "a size that is one counts again", func(pdb *policyv1.PodDisruptionBudget) bool {
		s := pdb.Status
		return s.ExpectedPods == 4 && s.CurrentHealthy == 6 && s.DisruptionsAllowed == 3
	})
}
