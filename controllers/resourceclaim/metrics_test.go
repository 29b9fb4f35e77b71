// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestClaimsAreCountedByWhatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		refuse := true
		c.claims.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "create" && refuse {
				refuse = false
				return fakeapi.Forbidden("resourceclaims")
			}
			return nil
		})
		var metrics prometheus.Collector
		managertest.Run(t, c.api.Config(), managertest.MakingMetrics(New, Defaults(), &metrics))
		want := func(when string, want map[string]float64) {
			t.Helper()
			if got := managertest.Series(t, metrics); !maps.Equal(got, want) {
				t.Errorf("%s, the series are %v, want %v", when, got, want)
			}
		}
		const claims, creates = "dynamic_resource_allocation_resource_claims", "dynamic_resource_allocation_resourceclaim_creates_total"
		c.addTemplate("gpus")
		pod := c.addPod("train", "", "gpu:gpus")
		pass(time.Minute)
		attempts := map[string]float64{
			creates + `{admin_access="false",owner_api_group="",owner_api_kind="Pod",status="failure"}`: 1,
			creates + `{admin_access="false",owner_api_group="",owner_api_kind="Pod",status="success"}`: 1,
			claims + `{admin_access="false",allocated="false",source="resource_claim_template"}`:        1,
		}
		want("with a claim that waits", attempts)

		c.allocate(c.only("made from the template").Name, pod)
		check(t, c.claims.Add(&resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
				{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AdminAccess: new(true)}},
			}}},
		}))
		check(t, c.claims.Add(&resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "extended", Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}},
		}))
		pass(time.Minute)
		delete(attempts, claims+`{admin_access="false",allocated="false",source="resource_claim_template"}`)
		attempts[claims+`{admin_access="false",allocated="true",source="resource_claim_template"}`] = 1
		attempts[claims+`{admin_access="true",allocated="false",source=""}`] = 1
		attempts[claims+`{admin_access="false",allocated="false",source="extended_resource"}`] = 1
		want("with three claims", attempts)
	})
}
