// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestOnTheWayUpTheLowestRecommendationOfTheWindowCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		c.autoscaler("web", 1, 10, slowly, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.Behavior.ScaleUp.StabilizationWindowSeconds = new(int32(120))
		})
		c.start()
		pass(time.Minute)
		c.uses("web", 2, "150m")
		pass(90 * time.Second)
		c.want("within the window", "web", 2)
		c.wantCondition("within the window", "web", "AbleToScale=True ScaleUpStabilized: recent recommendations were lower than current one, applying the lowest recent recommendation")
		pass(time.Minute)
		c.want("after the window", "web", 3)
	})
}

func TestASizeThatIsRefusedHasUpstreamsEventAndKeepsTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "100m")
		c.autoscaler("web", 1, 10)
		c.deployments.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && q.Subresource == "scale" {
				s := fakeapi.Forbidden("deployments")
				s.Message = "not today"
				return s
			}
			return nil
		})
		c.start()
		pass(time.Minute)
		if notes := c.notes("FailedRescale"); !slices.Equal(notes, []string{"New size: 4; reason: cpu resource utilization (percentage of request) above target; error: not today"}) {
			t.Errorf("the Events say %q", notes)
		}
		if s := c.hpa("web").Status; s.CurrentReplicas != 2 || s.LastScaleTime != nil {
			t.Errorf("the status is %+v", s)
		}
	})
}

// container is the CPU of one container of the Pods.
func container(name string, percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
		Name: corev1.ResourceCPU, Container: name, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
	}}
}

// A sidecar without a request is an error of the whole Pod, and not of one container.
func TestOneContainerIsMeasuredWithoutTheRequestsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		for _, name := range []string{"web-1-0", "web-1-1"} {
			if err := fakeapi.Change(c.pods, object.Key{Namespace: "shop", Name: name}, func(p *corev1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "mesh"})
			}); err != nil {
				t.Fatal(err)
			}
		}
		c.uses("web", 2, "100m")
		c.autoscaler("web", 1, 10, measuring(container("main", 50)))
		c.start()
		pass(time.Second)
		c.want("by one container", "web", 4)
		c.wantCondition("by one container", "web", "a replica count from cpu container resource utilization (percentage of request)")
		if m := c.hpa("web").Status.CurrentMetrics[0].ContainerResource; m == nil || m.Container != "main" || *m.Current.AverageUtilization != 100 {
			t.Errorf("the status has %+v", m)
		}
		c.resize("web", 2)
		c.edit("web", measuring(cpu(50)))
		pass(time.Second)
		c.wantCondition("by the whole Pod", "web", "ScalingActive=False FailedGetResourceMetric: the HPA was unable to compute the replica count: "+
			"failed to get cpu utilization: missing request for cpu in container mesh of Pod web-1-0")
		c.edit("web", measuring(container("db", 50)))
		pass(time.Second)
		c.wantCondition("by no container", "web", "ScalingActive=False FailedGetContainerResourceMetric: ")
	})
}

func TestAStatefulSetIsScaledAndItsPodsAreItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		sets := c.api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "statefulsets", Kind: "StatefulSet", Namespaced: true}, fakeapi.WithStatus())
		labels := map[string]string{"app": "db"}
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"},
			Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}
		p := running("db-0", labels)
		p.OwnerReferences = controlledBy("StatefulSet", "db")
		if err := sets.Put(set); err != nil {
			t.Fatal(err)
		}
		if err := c.pods.Put(p); err != nil {
			t.Fatal(err)
		}
		c.podMetrics(map[string]string{"db-0": "100m"})
		c.autoscaler("db", 1, 10, annotated(IgnoreForeignPods), func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef.Kind = "StatefulSet" })
		c.start()
		pass(time.Second)
		is, err := fakeapi.Read[*appsv1.StatefulSet](sets, object.KeyOf(set))
		if err != nil || *is.Spec.Replicas != 2 {
			t.Fatalf("the StatefulSet is %+v (%v); conditions:\n%s", is.Spec, err, conditions(c.hpa("db")))
		}
		if got := conditions(c.hpa("db")); strings.Contains(got, "of others") {
			t.Errorf("its own Pod is one of others:\n%s", got)
		}
	})
}

// The feature gate HPAScaleToZero is off.
func TestWithTheGateOffATargetAtZeroStaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.options.KeepZero = true
		c.deploy("web", 2)
		c.waits("0")
		c.autoscaler("web", 0, 10, measuring(queue("1")))
		c.start()
		pass(6 * time.Minute)
		c.want("without work", "web", 0)
		c.waits("3")
		pass(time.Minute)
		c.want("with work", "web", 0)
		if got := conditions(c.hpa("web")); strings.Contains(got, "ScaledToZero") || !strings.Contains(got, "ScalingActive=False ScalingDisabled") {
			t.Errorf("the conditions are\n%s", got)
		}
	})
}

// The feature gate HPAGeneration is off.
func TestWithTheGateOffAChangeOfTheSpecWaitsForThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.options.IgnoreGeneration = true
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		c.autoscaler("web", 1, 10)
		c.start()
		pass(time.Second)
		c.edit("web", func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.MinReplicas = new(int32(5)) })
		pass(10 * time.Second)
		c.want("within the period", "web", 2)
		pass(10 * time.Second)
		c.want("after it", "web", 5)
		if g := c.hpa("web").Status.ObservedGeneration; g != nil {
			t.Errorf("the observed generation is %d", *g)
		}
	})
}
