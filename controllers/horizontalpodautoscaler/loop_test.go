// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/setpoint-io/setpoint/object"
)

func TestADeploymentGrowsWithItsLoadAndShrinksAfterTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "100m")
		c.autoscaler("web", 1, 10)
		c.start()
		pass(time.Second)
		c.want("at twice the target", "web", 4)
		hpa := c.hpa("web")
		if s := hpa.Status; s.CurrentReplicas != 2 || s.DesiredReplicas != 4 || s.LastScaleTime == nil || s.ObservedGeneration == nil ||
			*s.ObservedGeneration != hpa.Generation || *s.CurrentMetrics[0].Resource.Current.AverageUtilization != 100 {
			t.Errorf("the status is %+v", s)
		}
		c.wantCondition("at first", "web", "AbleToScale=True SucceededRescale: the HPA controller was able to update the target scale to 4")
		c.wantCondition("at first", "web", "ScalingActive=True ValidMetricFound: the HPA was able to successfully calculate a replica count from "+
			"cpu resource utilization (percentage of request): 2 Pods counted by their metrics")
		c.wantCondition("at first", "web", "ScalingLimited=False DesiredWithinRange")
		if notes := c.notes("SuccessfulRescale"); !slices.Equal(notes, []string{"New size: 4; reason: cpu resource utilization (percentage of request) above target"}) {
			t.Errorf("the Events are %q", notes)
		}
		c.havePods("web", 4)
		c.uses("web", 4, "20m")
		pass(4 * time.Minute)
		c.want("within the window", "web", 4)
		c.wantCondition("within the window", "web", "AbleToScale=True ScaleDownStabilized: recent recommendations were higher")
		pass(time.Minute + 30*time.Second)
		c.want("after the window", "web", 2)
	})
}

func TestASpecThatChangesIsFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		c.autoscaler("web", 1, 10)
		c.start()
		pass(time.Second)
		c.edit("web", func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.MinReplicas = new(int32(5)) })
		c.want("without a wait", "web", 5)
		if notes := c.notes("SuccessfulRescale"); !slices.Equal(notes, []string{"New size: 5; reason: Current number of replicas below Spec.MinReplicas"}) {
			t.Errorf("the Events are %q", notes)
		}
	})
}

func TestATargetThatIsNotThereIsACondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.autoscaler("web", 1, 10)
		c.start()
		pass(time.Minute)
		c.wantCondition("without a target", "web", `AbleToScale=False FailedGetScale: the HPA controller was unable to get the target's current scale: deployments.apps "web" not found`)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		pass(15 * time.Second)
		c.wantCondition("with one", "web", "AbleToScale=True ReadyForNewScale")
		writes := 0
		for _, r := range c.api.Requests() {
			if r.Verb == "update" && strings.Contains(r.HTTP.URL.Path, "autoscalers") {
				writes++
			}
		}
		if writes != 2 {
			t.Errorf("the status was written %d times, want 2", writes)
		}
		_ = object.Key{}
	})
}
