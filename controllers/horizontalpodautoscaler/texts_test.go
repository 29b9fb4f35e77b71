// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"errors"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/events"
)

// Scripts and alerts compare the texts of a metric that cannot be read. The Event and the condition about the metric have
// the error itself. Only the Event about all metrics says before it what was to be read.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, computeReplicasForMetric and what it calls.
func TestTheTextsOfAMetricThatCannotBeReadAreThoseOfUpstream(t *testing.T) {
	one := new(resource.MustParse("1"))
	value := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: one}
	average := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: one}
	away := reading{err: errors.New("it is away")}
	hits := func(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.ObjectMetricSourceType, Object: &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: "front"},
			Metric:          autoscalingv2.MetricIdentifier{Name: "hits"}, Target: target,
		}}
	}
	waiting := func(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		spec := queue("1")
		spec.External.Target = target
		return spec
	}
	requests := func(target autoscalingv2.MetricTarget) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "requests"}, Target: target,
		}}
	}
	memory := autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceMemory, Target: average}}
	mesh := container("mesh", 50)
	mesh.ContainerResource.Target = average
	// selecting returns a metric with a selector that the API server does not refuse, and that is none, and what the reader says of it.
	selecting := func(spec autoscalingv2.MetricSpec) (autoscalingv2.MetricSpec, reading) {
		bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		switch {
		case spec.Object != nil:
			spec.Object.Metric.Selector = bad
		case spec.Pods != nil:
			spec.Pods.Metric.Selector = bad
		default:
			spec.External.Metric.Selector = bad
		}
		return spec, (&metricsReader{}).one(t.Context(), "shop", spec, nil)
	}
	badHits, likeHits := selecting(hits(average))
	badRequests, likeRequests := selecting(requests(average))
	badQueue, likeQueue := selecting(waiting(average))
	const none = "no pods returned by selector while calculating replica count"
	for _, test := range []struct {
		name       string
		spec       autoscalingv2.MetricSpec
		reading    reading
		reason     string
		is, before string // the error, and what the Event about all metrics says before it
	}{
		{"of an object", hits(value), away, "FailedGetObjectMetric", "unable to get metric hits on Ingress shop/front: it is away", "failed to get object metric value: "},
		{"of an object, for the Pods there are", hits(value), reading{value: 2000}, "FailedGetObjectMetric", "unable to calculate ready pods: " + none, "failed to get object metric value: "},
		{
			"of an object, as a share", hits(average), away, "FailedGetObjectMetric", "unable to get metric hits on Ingress shop/front: it is away",
			"failed to get object metric value: failed to get hits object metric: ",
		},
		{
			"of an object, without a target", hits(autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType}), away, "FailedGetObjectMetric",
			"invalid object metric source: neither a value target nor an average value target was set", "failed to get object metric value: ",
		},
		{"of an object, with a selector that is none", badHits, likeHits, "FailedGetObjectMetric", `"Like" is not a valid label selector operator`, "failed to get object metric value: "},
		{
			"external", waiting(value), away, "FailedGetExternalMetric", "unable to get external metric shop/queue/nil: it is away",
			"failed to get queue external metric value: failed to get external metric queue: ",
		},
		{
			"external, for the Pods there are", waiting(value), reading{value: 2000}, "FailedGetExternalMetric", "unable to calculate ready pods: " + none,
			"failed to get queue external metric value: failed to get external metric queue: ",
		},
		{
			"external, as a share", waiting(average), away, "FailedGetExternalMetric", "unable to get external metric shop/queue/nil: it is away",
			"failed to get queue external metric value: failed to get queue external metric: ",
		},
		{
			"external, without a target", waiting(autoscalingv2.MetricTarget{}), away, "FailedGetExternalMetric",
			"invalid external metric source: neither a value target nor an average value target was set", "failed to get queue external metric value: ",
		},
		{
			"external, with a selector that is none", badQueue, likeQueue, "FailedGetExternalMetric", `"Like" is not a valid label selector operator`,
			"failed to get queue external metric value: failed to get queue external metric: ",
		},
		{"of Pods", requests(average), away, "FailedGetPodsMetric", "unable to get metric requests: it is away", "failed to get pods metric value: "},
		{"of Pods, of which there are none", requests(average), reading{pods: newSamples()}, "FailedGetPodsMetric", none, "failed to get pods metric value: "},
		{"of Pods, with a selector that is none", badRequests, likeRequests, "FailedGetPodsMetric", `"Like" is not a valid label selector operator`, "failed to get pods metric value: "},
		{
			"a resource", cpu(50), away, "FailedGetResourceMetric", "failed to get cpu utilization: unable to get metrics for resource cpu: it is away",
			"failed to get cpu resource metric value: ",
		},
		{
			"a resource, as an average", memory, away, "FailedGetResourceMetric", "failed to get memory usage: unable to get metrics for resource memory: it is away",
			"failed to get memory resource metric value: ",
		},
		{"a resource, of no Pods", cpu(50), reading{pods: newSamples()}, "FailedGetResourceMetric", "failed to get cpu utilization: " + none, "failed to get cpu resource metric value: "},
		{
			"a resource of a container", container("mesh", 50), away, "FailedGetContainerResourceMetric", "failed to get cpu utilization: unable to get metrics for resource cpu: it is away",
			"failed to get mesh container metric value: ",
		},
		{
			"a resource of a container, as an average", mesh, away, "FailedGetContainerResourceMetric", "failed to get cpu usage: unable to get metrics for resource cpu: it is away",
			"failed to get mesh container metric value: ",
		},
		{"of an unknown type", autoscalingv2.MetricSpec{Type: "Moon"}, reading{}, "InvalidMetricSourceType", `unknown metric source type "Moon"`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Defaults()
			hpa := autoscaler(1, 10, measuring(test.spec))
			p := o.decide(&snapshot{
				hpa: hpa, now: now, readings: []reading{test.reading},
				scale: &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}, Status: autoscalingv1.ScaleStatus{Replicas: 4}},
			})
			wantEvent := func(reason, note string) {
				t.Helper()
				for _, e := range p.events {
					if e.Reason == reason && e.Note == note && e.Warning {
						return
					}
				}
				t.Errorf("the Events are\n%s\nwant %s: %s", notesOf(p.events), reason, note)
			}
			wantEvent(test.reason, test.is)
			wantEvent("FailedComputeMetricsReplicas", "invalid metrics (1 invalid out of 1), first error is: "+test.before+test.is)
			if len(p.events) != 2 {
				t.Errorf("the Events are\n%s\nwant two", notesOf(p.events))
			}
			want := "ScalingActive=False " + test.reason + ": the HPA was unable to compute the replica count: " + test.is
			if got := conditions(&autoscalingv2.HorizontalPodAutoscaler{Status: p.status}); got != "AbleToScale=True SucceededGetScale: the HPA controller was able to get the target's current scale\n"+want {
				t.Errorf("the conditions are\n%s\nwant %s", got, want)
			}
		})
	}
}

// notesOf returns Events as lines.
func notesOf(all events.List) (text string) {
	for _, e := range all {
		text += e.Reason + ": " + e.Note + "\n"
	}
	return text
}
