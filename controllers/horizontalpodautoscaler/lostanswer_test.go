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

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The answer to the write that takes the last replicas away is lost, and what the server has cannot be read at that moment.
func TestATargetAtZeroComesBackAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.waits("2")
		c.autoscaler("web", 0, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
		})
		c.start()
		pass(time.Minute)
		c.waits("0")
		lost := time.Time{}
		c.deployments.LoseAnswer(func(q *fakeapi.Request) bool {
			if q.Verb == "update" && q.Subresource == "scale" && lost.IsZero() {
				lost = time.Now()
				return true
			}
			return false
		})
		c.deployments.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "get" && !lost.IsZero() && time.Since(lost) < 5*time.Second {
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcd has no leader"}
			}
			return nil
		})
		pass(6 * time.Minute)
		c.want("without work", "web", 0)
		if lost.IsZero() {
			t.Fatal("no answer was lost")
		}
		c.waits("3")
		pass(time.Hour)
		c.want("with work", "web", 3)
		c.wantCondition("with work", "web", "ScaledToZero=False NotScaledToZero")
	})
}
