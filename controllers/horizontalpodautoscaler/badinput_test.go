// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// custom is a metric of the Pods, whose target is an average.
func custom(average string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "requests"},
		Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse(average))},
	}}
}

// ofObject is a metric of a Deployment, whose target is a value.
func ofObject(value string) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
		DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "front"},
		Metric:          autoscalingv2.MetricIdentifier{Name: "hits"},
		Target:          autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: new(resource.MustParse(value))},
	}}
}

// measuring gives a HorizontalPodAutoscaler other metrics.
func measuring(all ...autoscalingv2.MetricSpec) func(*autoscalingv2.HorizontalPodAutoscaler) {
	return func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.Metrics = all }
}

// serves sets the values of a metric of the Pods web-1-0 and web-1-1, of the Deployment front, and of
// the external metric queue, in JSON.
func (c *cluster) serves(value string) {
	c.t.Helper()
	const custom = "/apis/custom.metrics.k8s.io"
	c.metrics.set(custom, `{"kind":"APIGroup","name":"custom.metrics.k8s.io","versions":[{"groupVersion":"custom.metrics.k8s.io/v1beta2","version":"v1beta2"}]}`)
	item := func(name string) string {
		return fmt.Sprintf(`{"describedObject":{"name":%q},"timestamp":"2000-01-01T00:00:00Z","value":%s}`, name, value)
	}
	list := func(items ...string) string { return `{"items":[` + strings.Join(items, ",") + `]}` }
	c.metrics.set(custom+"/v1beta2/namespaces/shop/pods/*/requests", list(item("web-1-0"), item("web-1-1")))
	c.metrics.set(custom+"/v1beta2/namespaces/shop/deployments.apps/front/hits", list(item("front")))
	c.metrics.set("/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/queue", list(item("")))
}

func TestCustomAndExternalMetricsThatAreNoNumbersChangeNothingAndAreSaid(t *testing.T) {
	for value, wrong := range map[string]string{
		`"NaN"`: `"NaN", which is no quantity`, `"+Inf"`: `"+Inf", which is no quantity`, `null`: "no value", `""`: "no value",
		`"1e999999999"`: `"1e999999999", whose exponent is too large`, `{"a":1}`: "which is no quantity", `[]`: "which is no quantity", `true`: "which is no quantity",
	} {
		for reason, spec := range map[string]autoscalingv2.MetricSpec{
			"FailedGetPodsMetric": custom("10"), "FailedGetObjectMetric": ofObject("10"), "FailedGetExternalMetric": queue("10"),
		} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.deploy("web", 2)
				c.serves(value)
				c.autoscaler("web", 1, 10, measuring(spec))
				c.start()
				pass(10 * time.Minute)
				c.want(value, "web", 2)
				c.wantCondition(value, "web", "ScalingActive=False "+reason+": the HPA was unable to compute the replica count: ")
				c.wantCondition(value, "web", wrong)
				if n := len(c.metrics.asked); n > 82 { // the metric, and the versions of the API
					t.Errorf("%s of %s: %d requests for metrics in ten minutes", reason, value, n)
				}
				if notes := c.notes(reason); len(notes) != 1 {
					t.Errorf("the Events say %q", notes)
				}
			})
		}
	}
}

func TestMetricsBelowZeroAskForTheFewestAndAreSaid(t *testing.T) {
	for name, spec := range map[string]autoscalingv2.MetricSpec{"of Pods": custom("10"), "of an object": ofObject("10"), "external": queue("10")} {
		for _, value := range []string{`"-5"`, `-5`, `"-9e18"`, `"-5000m"`} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.deploy("web", 4)
				c.serves(value)
				c.autoscaler("web", 2, 10, measuring(spec))
				c.start()
				pass(10 * time.Minute)
				c.want(name, "web", 2)
				c.havePods("web", 2)
				pass(time.Minute)
				c.wantCondition(name+" of "+value, "web", "is negative, so it asks for the fewest")
				c.wantCondition(name+" of "+value, "web", "ScalingLimited=True TooFewReplicas")
			})
		}
	}
}

func TestScalesOfTargetsThatAreNoneChangeNothingAndAreSaid(t *testing.T) {
	ref := func(apiVersion, kind, name string) autoscalingv2.CrossVersionObjectReference {
		return autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
	}
	for _, test := range []struct {
		ref  autoscalingv2.CrossVersionObjectReference
		want string
	}{
		{ref("v1", "ConfigMap", "settings"), "configmaps does not implement the scale subresource"},
		{ref("example.com/v1", "Nothing", "web"), "the server serves no kind Nothing in example.com/v1"},
		{ref("a/b/c", "Deployment", "web"), "the apiVersion of spec.scaleTargetRef: unexpected GroupVersion string: a/b/c"},
		{ref("apps/v1", "DaemonSet", "agent"), "does not implement the scale subresource"},
		{ref("v1", "Node", "node-0"), "have no namespace, and a HorizontalPodAutoscaler scales objects of its own"},
		{ref("apps/v1", "Deployment", "nothing"), `deployments.apps "nothing" not found`},
		{ref("autoscaling/v2", "HorizontalPodAutoscaler", "web"), "does not implement the scale subresource"},
		{ref("", "Deployment", "web"), "spec.scaleTargetRef has no apiVersion"},
	} {
		t.Run(test.ref.APIVersion+" "+test.ref.Kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				withoutScale(c.autoscalers)
				withoutScale(c.api.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}))
				c.api.Serve(object.Resource{Version: "v1", Plural: "nodes", Kind: "Node"})
				withoutScale(c.api.Serve(object.Resource{Group: "apps", Version: "v1", Plural: "daemonsets", Kind: "DaemonSet", Namespaced: true}))
				c.autoscaler("web", 1, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Spec.ScaleTargetRef = test.ref })
				c.deploy("right", 2)
				c.uses("right", 2, "100m")
				c.autoscaler("right", 1, 10)
				c.start()
				pass(time.Second)
				c.want("beside it", "right", 4)
				c.wantCondition("at first", "web", "AbleToScale=False FailedGetScale: the HPA controller was unable to get the target's current scale: ")
				c.wantCondition("at first", "web", test.want)
				c.api.Forget()
				pass(10 * time.Minute)
				if n := len(c.api.Requests()); n > 40*6 { // one for the other, and five for this one, in each period
					t.Errorf("%d requests in ten minutes", n)
				}
				for _, q := range c.autoscalers.Requests() {
					if q.Verb == "update" && q.Key.Name == "web" {
						t.Errorf("a status that says the same was written again: %s", q.String())
					}
				}
				if notes := c.notes("FailedGetScale"); len(notes) != 1 || !strings.Contains(notes[0], test.want) {
					t.Errorf("the Events say %q", notes)
				}
			})
		})
	}
}

// withoutScale answers requests for scales of a kind as a server answers that has none.
func withoutScale(r *fakeapi.Resource) {
	r.Before(func(q *fakeapi.Request) *metav1.Status {
		if q.Subresource == "scale" {
			return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}
		}
		return nil
	})
}

// A custom kind may have any text where its scale has the selector.
func TestSelectorsOfScales(t *testing.T) {
	for text, want := range map[string]string{
		"":                "InvalidSelector: the HPA target's scale is missing a selector",
		"app in (":        "InvalidSelector: couldn't convert selector into a corresponding internal selector object: ",
		"app==web==db":    "InvalidSelector: couldn't convert selector into a corresponding internal selector object: ",
		"app=not a value": "InvalidSelector: couldn't convert selector into a corresponding internal selector object: ",
	} {
		_, problem := parseSelector(text)
		if problem == nil || !strings.HasPrefix(problem.reason+": "+problem.message, want) {
			t.Errorf("%q: %+v, want %s", text, problem, want)
			continue
		}
		o := Defaults()
		s := sized(2)
		s.selector = problem
		p := o.decide(s)
		if p.rescale || len(p.events) != 2 || p.events[0].Reason != problem.event || p.events[1].Reason != "FailedComputeMetricsReplicas" {
			t.Errorf("%q: it scales: %t, with the Events %v", text, p.rescale, p.events)
		}
		if got := conditions(&autoscalingv2.HorizontalPodAutoscaler{Status: p.status}); !strings.Contains(got, "ScalingActive=False "+want) {
			t.Errorf("%q: the conditions are\n%s", text, got)
		}
	}
}

// The schema of a custom kind may allow a size below zero.
func TestATargetBelowZeroGetsTheLeastSize(t *testing.T) {
	o := Defaults()
	for _, least := range []int32{0, 1, 3} {
		s := sized(-5)
		s.hpa.Spec.MinReplicas = &least
		if p := o.decide(s); !p.rescale || p.replicas != least || p.why != "Current number of replicas below Spec.MinReplicas" {
			t.Errorf("with a minimum of %d it wants %d: %s", least, p.replicas, p.why)
		}
	}
}

// sized returns a snapshot of a target of a size.
func sized(replicas int32) *snapshot {
	s := &snapshot{hpa: autoscaler(1, 10), now: now, scale: &autoscalingv1.Scale{}}
	s.scale.Spec.Replicas = replicas
	return s
}

func TestAHistoryThatIsNoneIsReplaced(t *testing.T) {
	for _, text := range []string{"", "NaN", "{", `{"size":-4}`, `{"size":"two"}`, `[]`, `{"size":4,"highest":[{"at":"yesterday","replicas":9}]}`, strings.Repeat("[", 100_000)} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			c.deploy("web", 2)
			c.uses("web", 2, "100m")
			c.autoscaler("web", 1, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
				hpa.Annotations = map[string]string{historyAnnotation: text}
			})
			c.start()
			pass(time.Second)
			c.want(fmt.Sprintf("with the annotation %.20q", text), "web", 4)
			c.havePods("web", 4)
			c.uses("web", 4, "50m")
			pass(time.Minute)
			if got := c.hpa("web").Annotations[historyAnnotation]; got == text && text != "" {
				t.Errorf("the annotation is still %.20q", got)
			}
			c.api.Forget()
			pass(10 * time.Minute)
			for _, call := range c.api.Calls() {
				if strings.HasPrefix(call, "update") && strings.Contains(call, "horizontalpodautoscalers") {
					t.Errorf("a write of a steady target: %s", call)
				}
			}
		})
	}
}

func TestASizeThatTheServerRefusesIsSaidAndDelaysNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		for _, name := range []string{"web", "right"} {
			c.deploy(name, 2)
			c.autoscaler(name, 1, 10)
		}
		c.podMetrics(map[string]string{"web-1-0": "100m", "web-1-1": "100m", "right-1-0": "100m", "right-1-1": "100m"})
		c.deployments.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb == "update" && q.Subresource == "scale" && q.Key.Name == "web" {
				return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "a webhook refused it"}
			}
			return nil
		})
		c.start()
		pass(time.Second)
		c.want("beside it", "right", 4)
		c.wantCondition("at first", "web", "AbleToScale=False FailedUpdateScale: the HPA controller was unable to update the target scale: a webhook refused it")
		pass(10 * time.Minute)
		writes := 0
		for _, q := range c.deployments.Requests() {
			if q.Verb == "update" && q.Key.Name == "web" {
				writes++
			}
		}
		if writes > 42 { // once a period
			t.Errorf("the size was written %d times in ten minutes", writes)
		}
	})
}
