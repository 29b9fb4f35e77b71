// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
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
		synctest.Wait()
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
	})
}

// slowly allows one Pod more and one Pod less in a minute.
func slowly(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	one := []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1, PeriodSeconds: 60}}
	most := autoscalingv2.MaxChangePolicySelect
	hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp:   &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0)), SelectPolicy: &most, Policies: one},
		ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(0)), SelectPolicy: &most, Policies: one},
	}
}

func TestAPolicyHoldsThroughARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "200m")
		c.autoscaler("web", 1, 10, slowly)
		stop := c.start()
		pass(time.Second)
		c.want("at first", "web", 3)
		stop()
		stop = c.start()
		pass(40 * time.Second)
		c.want("within the minute, after a restart", "web", 3)
		c.wantCondition("within the minute", "web", "ScalingLimited=True ScaleUpLimit")
		pass(20 * time.Second)
		c.want("after the minute", "web", 4)
		stop()
	})
}

func TestAWindowGoesOnThroughARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 4)
		c.uses("web", 4, "50m")
		c.autoscaler("web", 1, 10)
		stop := c.start()
		pass(time.Minute + time.Second)
		c.uses("web", 4, "10m") // the window of 5 minutes begins
		pass(2 * time.Minute)
		c.want("before the restart", "web", 4)
		stop()
		pass(10 * time.Second)
		c.start()
		pass(2*time.Minute + 20*time.Second)
		c.want("4 m 30 s after the last recommendation of 4", "web", 4)
		pass(time.Minute)
		c.want("after the window", "web", 1)
		if text := c.hpa("web").Annotations[historyAnnotation]; text != "" {
			t.Errorf("with nothing to remember there is the annotation %s", text)
		}
	})
}

func TestASteadyTargetHasNoAnnotationAndCostsNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		c.autoscaler("web", 1, 10)
		c.start()
		pass(time.Minute)
		if text := c.hpa("web").Annotations[historyAnnotation]; text != "" {
			t.Errorf("there is the annotation %s", text)
		}
		c.api.Forget()
		pass(10 * time.Minute)
		for _, call := range c.api.Calls() {
			if strings.HasPrefix(call, "update") {
				t.Errorf("a write of a steady target: %s", call)
			}
		}
	})
}

func TestATargetAtZeroComesBackAfterAKillBetweenTheTwoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.waits("2")
		c.autoscaler("web", 0, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
		})
		p := c.process()
		pass(time.Minute)
		c.waits("0")
		killed := false
		c.autoscalers.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && c.size("web") == 0 {
				killed = true
				return fakeapi.Forbidden("horizontalpodautoscalers") // the process does not hear more
			}
			return nil
		})
		pass(6 * time.Minute)
		c.want("without work", "web", 0)
		if !killed {
			t.Fatal("no status was written after the size")
		}
		p.Stop()
		c.autoscalers.Before(nil)
		c.start()
		pass(time.Minute)
		c.want("after the kill", "web", 0)
		c.wantCondition("after the kill", "web", "ScaledToZero=True ScaledToZero: the HPA controller scaled the workload to zero")
		c.waits("3")
		pass(15 * time.Second)
		c.want("with work", "web", 3)
		c.wantCondition("with work", "web", "ScaledToZero=False NotScaledToZero")
	})
}

func TestATargetThatAUserTookToZeroStaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.waits("2")
		c.autoscaler("web", 0, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
		})
		c.start()
		pass(time.Minute)
		c.resize("web", 0)
		pass(time.Minute)
		c.want("after the user", "web", 0)
		c.wantCondition("after the user", "web", "ScalingActive=False ScalingDisabled: scaling is disabled since the replica count of the target is zero")
	})
}

// A size of 0 that a user gives turns the scaling off, such as for maintenance. That this controller has removed the last
// replicas some time before does not matter: the user has given the target replicas since.
func TestATargetThatAUserTookToZeroStaysThereAlthoughItWasScaledToZeroBefore(t *testing.T) {
	for name, least := range map[string]int32{"the least is 0": 0, "the least has become 1": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.deploy("web", 2)
				c.waits("0")
				c.autoscaler("web", 0, 10, measuring(queue("1")))
				c.start()
				pass(6 * time.Minute)
				c.want("without work", "web", 0)
				c.wantCondition("without work", "web", "ScaledToZero=True ScaledToZero")
				c.resize("web", 2)
				c.waits("2") // which is what two replicas are for, so this controller changes nothing
				c.edit("web", func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.MinReplicas = &least })
				pass(time.Minute)
				c.want("after the user gave it replicas", "web", 2)
				c.wantCondition("after the user gave it replicas", "web", "ScaledToZero=False NotScaledToZero")
				c.resize("web", 0)
				c.waits("5")
				pass(time.Minute)
				c.want("after the user took them away", "web", 0)
				c.wantCondition("after the user took them away", "web", "ScalingActive=False ScalingDisabled: scaling is disabled since the replica count of the target is zero")
				c.resize("web", 1)
				pass(time.Minute)
				c.want("after the user turned it on again", "web", 5)
			})
		})
	}
}

func TestASizeThatAUserChangesMeanwhileIsNotOverwritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "100m")
		c.autoscaler("web", 1, 10)
		once := true
		c.deployments.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && q.Subresource == "scale" && once {
				once = false
				go c.resize("web", 7)
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		c.start()
		pass(500 * time.Millisecond)
		c.want("at once", "web", 7)
		if once {
			t.Error("no size was written")
		}
	})
}

func TestAnAnswerThatIsLostIsAChangeThatCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "200m")
		c.autoscaler("web", 1, 10, slowly)
		c.deployments.LoseNext(1, "update")
		c.start()
		pass(50 * time.Second)
		c.want("within the minute", "web", 3)
		if s := c.hpa("web").Status; s.LastScaleTime == nil || s.DesiredReplicas != 3 {
			t.Errorf("the status is %+v", s)
		}
	})
}

func TestTwoForTheSamePodsScaleNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		same := func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.ScaleTargetRef.Name = "web"
		}
		c.autoscaler("one", 1, 10, same)
		c.autoscaler("two", 1, 10, same)
		stop := c.start()
		pass(time.Minute)
		const want = "ScalingActive=False AmbiguousSelector: pods by selector app=web are controlled by more than one HPA (e.g. [shop/one shop/two])"
		c.wantCondition("with two", "one", want)
		c.wantCondition("with two", "two", want)
		stop()
		c.uses("web", 2, "100m")
		c.options.Workers = 1 // one of them is the first
		c.start()
		pass(time.Minute)
		c.want("after a restart", "web", 2)
		c.wantCondition("after a restart", "one", want)
	})
}

func TestAMetricsServerThatIsWrongIsACondition(t *testing.T) {
	const path = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
	for name, test := range map[string]struct{ body, want string }{
		"it is absent": {"", "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: " +
			"the server could not find the requested resource (get pods.metrics.k8s.io in namespace shop): nothing in the cluster serves it in metrics.k8s.io"},
		"it has nothing":  {`{"items":[]}`, "no metrics returned from resource metrics API"},
		"it is garbage":   {`<html>`, "reading the answer: invalid character '<'"},
		"it is no number": {podMetrics("cpu", map[string]string{"web-1-0": "NaN", "web-1-1": "NaN"}), `the metric of Pod web-1-0 cannot be used: container main uses "NaN", which is no quantity`},
		"it is negative":  {podMetrics("cpu", map[string]string{"web-1-0": "-5", "web-1-1": "-5"}), `container main uses "-5", which is negative`},
		"it is of no Pod": {podMetrics("cpu", map[string]string{"db": "5"}), "did not receive metrics for targeted pods (pods might be unready)"},
		"it is enormous":  {podMetrics("cpu", map[string]string{"web-1-0": "1e999999999", "web-1-1": "1"}), "2 Pods"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.deploy("web", 2)
				if test.body != "" {
					c.metrics.set(path, test.body)
				}
				c.autoscaler("web", 1, 10)
				c.start()
				pass(time.Minute)
				if name == "it is enormous" {
					c.wantCondition(name, "web", `1 Pod counted by their metrics, 1 without a metric (web-1-0), the metric of Pod web-1-0 cannot be used: container main uses "1e999999999", whose exponent is too large`)
					return
				}
				c.wantCondition(name, "web", test.want)
				c.want(name, "web", 2)
				if n := len(c.metrics.asked); n > 6 {
					t.Errorf("the metrics were read %d times in a minute", n)
				}
			})
		})
	}
}

func TestAMetricsServerThatHangsHoldsItsOwnForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.metrics.stall("/apis/metrics.k8s.io")
		c.deploy("web", 2)
		c.deploy("queue", 2)
		c.waits("5")
		c.autoscaler("web", 1, 10)
		c.autoscaler("queue", 1, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
		})
		c.start()
		pass(time.Second)
		c.want("meanwhile", "queue", 4)
		pass(Patience)
		c.wantCondition("after the bound", "web", "no answer within 10s")
		c.metrics.stall("")
		c.uses("web", 2, "100m")
		pass(15 * time.Second)
		c.want("when it answers again", "web", 4)
	})
}

// Many HorizontalPodAutoscalers whose metrics API hangs occupy one of the workers, and none when it answers again.
func TestAMetricsServerThatHangsDelaysNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.metrics.stall("/apis/metrics.k8s.io")
		const many = 40
		for i := range many {
			name := fmt.Sprint("web-", i)
			c.deploy(name, 2)
			c.autoscaler(name, 1, 10)
		}
		c.start()
		pass(2 * Patience)
		c.deploy("queue", 2)
		c.waits("5")
		c.autoscaler("queue", 1, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
		})
		pass(time.Second)
		c.want("beside many that wait", "queue", 4)
		// Those whose own request waited say so; which ones these are depends on the order of the workers.
		refused := 0
		for i := range many {
			if strings.Contains(conditions(c.hpa(fmt.Sprint("web-", i))), "metrics.k8s.io has not answered since") {
				refused++
			}
		}
		if waited := many - refused; waited > 3*c.options.Workers {
			t.Errorf("%d of %d autoscalers waited for the metrics API that hangs, want no more than the workers in their first run, and one at a time after it", waited, many)
		}
		c.metrics.stall("")
		all := map[string]string{}
		for i := range many {
			for pod := range 2 {
				all[fmt.Sprintf("web-%d-1-%d", i, pod)] = "100m"
			}
		}
		c.podMetrics(all)
		pass(Patience + 2*15*time.Second)
		for i := range many {
			c.want("when it answers again", fmt.Sprint("web-", i), 4)
		}
	})
}

func TestCustomMetricsAreReadInTheVersionThatIsServed(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1beta2"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.deploy("web", 2)
			const root = "/apis/custom.metrics.k8s.io"
			c.metrics.set(root, `{"kind":"APIGroup","versions":[{"groupVersion":"custom.metrics.k8s.io/`+version+`","version":"`+version+`"}]}`)
			c.metrics.set(root+"/"+version+"/namespaces/shop/pods/*/requests",
				`{"items":[{"describedObject":{"kind":"Pod","name":"web-1-0"},"value":"20"},{"describedObject":{"name":"web-1-1"},"value":"40"}]}`)
			c.metrics.set(root+"/"+version+"/namespaces/shop/deployments.apps/front/hits", `{"items":[{"describedObject":{"name":"front"},"value":"500m"}]}`)
			c.metrics.set(root+"/"+version+"/namespaces/shop/metrics/load", `{"items":[{"describedObject":{"name":"shop"},"value":1}]}`)
			c.autoscaler("web", 1, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
				object := func(kind, api, name, metric string) autoscalingv2.MetricSpec {
					return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
						DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: api, Kind: kind, Name: name},
						Metric:          autoscalingv2.MetricIdentifier{Name: metric},
						Target:          autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: queue("1").External.Target.AverageValue},
					}}
				}
				hpa.Spec.Metrics = []autoscalingv2.MetricSpec{
					{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
						Metric: autoscalingv2.MetricIdentifier{Name: "requests"},
						Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: queue("10").External.Target.AverageValue},
					}},
					object("Deployment", "apps/v1", "front", "hits"),
					object("Namespace", "v1", "other", "load"),
				}
			})
			c.start()
			pass(time.Second)
			if s := c.hpa("web").Status; len(s.CurrentMetrics) != 3 || s.CurrentMetrics[0].Pods == nil || s.CurrentMetrics[0].Pods.Current.AverageValue.String() != "30" ||
				s.CurrentMetrics[1].Object == nil || s.CurrentMetrics[1].Object.Current.Value.String() != "500m" || s.CurrentMetrics[2].Object == nil {
				t.Errorf("in %s the metrics are %+v\n%s", version, s.CurrentMetrics, conditions(c.hpa("web")))
			}
			c.want("in "+version, "web", 4)
			if !slices.ContainsFunc(c.metrics.asked, func(q string) bool { return strings.Contains(q, "pods/*/requests?labelSelector=app%3Dweb") }) {
				t.Errorf("read was %q", c.metrics.asked)
			}
		})
	}
}

func TestPodsOfOthersAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "50m")
		stranger := running("backup-x", map[string]string{"app": "web"})
		stranger.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "backup", UID: "b", Controller: new(true)}}
		if err := c.pods.Put(stranger); err != nil {
			t.Fatal(err)
		}
		c.autoscaler("web", 1, 10)
		c.start()
		pass(time.Second)
		c.wantCondition("with a Pod of a Job", "web", "; the selector of the target selects 1 Pod of others too: Job backup")
	})
}

func TestAStatusThatConflictsIsWrittenToTheNewestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.deploy("web", 2)
		c.uses("web", 2, "100m")
		c.autoscaler("web", 1, 10)
		c.autoscalers.HoldWatches(true)
		once := true
		c.autoscalers.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && q.Subresource == "status" && once {
				once = false
				go c.edit("web", func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Labels = map[string]string{"by": "user"} })
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		c.start()
		pass(time.Second)
		hpa := c.hpa("web")
		if hpa.Status.DesiredReplicas != 4 || hpa.Status.LastScaleTime == nil || hpa.Labels["by"] != "user" {
			t.Errorf("it is %+v", hpa)
		}
		c.autoscalers.HoldWatches(false)
		synctest.Wait()
	})
}
