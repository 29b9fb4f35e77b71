// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The target of one of two HorizontalPodAutoscalers cannot be read for a moment. The other one does not scale its Pods.
func TestTwoForTheSamePodsScaleNothingWhileOneTargetCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		same := func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef.Name = "web" }
		c.autoscaler("one", 1, 10, same)
		c.autoscaler("two", 1, 10, same)
		c.start()
		pass(time.Minute)
		const want = "ScalingActive=False AmbiguousSelector: pods by selector app=web are controlled by more than one HPA (e.g. [shop/one shop/two])"
		c.wantCondition("with two", "one", want)
		c.wantCondition("with two", "two", want)
		c.uses("web", 2, "100m")
		pass(time.Minute)
		c.deployments.RefuseNext(1, "get", &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcd has no leader"})
		pass(time.Minute)
		if n := c.size("web"); n != 2 {
			t.Errorf("after one target could not be read once, web has the size %d, want 2", n)
		}
	})
}

// One of two HorizontalPodAutoscalers gets another target, which cannot be read. The other one is alone then.
func TestOneOfTwoForTheSamePodsScalesThemAfterTheOtherGotATargetThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		same := func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef.Name = "web" }
		c.autoscaler("one", 1, 4, same)
		c.autoscaler("two", 1, 4, same)
		c.start()
		pass(time.Minute) // each learns of the other one
		c.uses("web", 2, "100m")
		pass(time.Minute)
		if n := c.size("web"); n != 2 {
			t.Fatalf("with two, web has the size %d, want 2", n)
		}
		c.edit("one", func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.ScaleTargetRef.APIVersion = "no/such/version"
		})
		pass(time.Minute)
		if n := c.size("web"); n != 4 {
			t.Errorf("with one, web has the size %d, want 4", n)
		}
	})
}
