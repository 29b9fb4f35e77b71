// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// now is a time at which the Pods of these tests have run for an hour.
var now = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// mixed returns Pods by a word each: "100m" is a ready Pod that uses so much CPU, "-" one without a
// metric, and the others are Pods in a state. Each requests 100m.
func mixed(words string) ([]*corev1.Pod, samples) {
	var all []*corev1.Pod
	metrics := newSamples()
	for i, word := range strings.Fields(words) {
		pod := running(fmt.Sprint("p", i), map[string]string{"app": "web"})
		since := metav1.NewTime(now.Add(-time.Hour))
		pod.Status.StartTime, pod.Status.Conditions[0].LastTransitionTime = &since, since
		state, use, _ := strings.Cut(word, ":")
		switch state {
		case "pending":
			pod.Status.Phase = corev1.PodPending
		case "failed":
			pod.Status.Phase = corev1.PodFailed
		case "succeeded":
			pod.Status.Phase = corev1.PodSucceeded
		case "deleted":
			pod.DeletionTimestamp = &metav1.Time{Time: now}
		case "starting": // it became ready within the window of its metric
			pod.Status.StartTime = &metav1.Time{Time: now.Add(-time.Minute)}
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-10 * time.Second))
		case "settled": // it is young, and its metric lies within the time in which it is ready
			pod.Status.StartTime = &metav1.Time{Time: now.Add(-2 * time.Minute)}
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
		case "never": // it has not been ready since its start an hour ago
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
		case "unready": // it was ready for long, and is not any more
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
			pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
		case "-":
		default:
			use = word
		}
		all = append(all, pod)
		if use != "" {
			metrics.put(pod.Name, sample{value: milli(resource.MustParse(use)), at: now, window: 30 * time.Second}, nil)
		}
	}
	return all, metrics
}

func TestReplicasByTheUtilizationOfPods(t *testing.T) {
	for _, test := range []struct {
		name, pods string
		current    int32
		want       int32
		percent    int32
	}{
		{"at the target", "50m 50m", 2, 2, 50},
		{"twice the target", "100m 100m", 2, 4, 100},
		{"half of the target", "25m 25m 25m 25m", 4, 2, 25},
		{"rounded up", "60m 60m 60m", 3, 4, 60},
		{"within the tolerance", "54m 54m 54m", 3, 3, 54},
		{"at its upper end", "55m 55m", 2, 2, 55},
		{"just above it", "56m 56m", 2, 3, 56},
		{"at its lower end", "45m 45m", 2, 2, 45},
		{"pending Pods count as 0 on the way up", "100m 100m pending", 3, 4, 100},
		{"a change that becomes small by them is none", "70m pending", 2, 2, 70},
		{"one that would turn is none", "60m pending pending", 3, 3, 60},
		{"they count for nothing on the way down", "10m 10m pending", 3, 1, 10},
		{"Pods without a metric count as 0 on the way up", "150m 150m -", 3, 6, 150},
		{"and as all of their request on the way down", "10m 10m -", 3, 3, 10},
		{"by which less is removed", "5m 5m 5m 5m -", 5, 3, 5},
		{"a Pod that has just become ready is not ready", "100m starting:500m", 2, 2, 100},
		{"one that has been ready for a window is", "100m settled:100m", 2, 4, 100},
		{"one that never was ready is not", "100m 100m never:0m", 3, 4, 100},
		{"one that is unready for a while is", "100m unready:0m", 2, 2, 50},
		{"Pods that are deleted or have ended do not count", "100m failed:0m deleted:0m succeeded:0m", 1, 2, 100},
		{"a sum that does not fit is the largest", "9000000P 9000000P", 2, 85899346, 2147483647},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Defaults()
			pods, metrics := mixed(test.pods)
			c := o.count(pods, corev1.ResourceCPU, metrics, now)
			got, err := c.byUtilization(test.current, 50, tolerances{0.1, 0.1}, corev1.ResourceCPU, "")
			if err != nil || got.replicas != test.want || got.percent != test.percent {
				t.Errorf("of %q it makes %+v (%v), want %d at %d%%", test.pods, got, err, test.want, test.percent)
			}
		})
	}
}

func TestReplicasByAnAverageOfPods(t *testing.T) {
	for _, test := range []struct {
		name, pods    string
		current, want int32
	}{
		{"at the target", "20 20", 2, 2},
		{"above it", "40 40", 2, 4},
		{"below it", "5 5 5 5", 4, 1},
		{"negative", "-50 -50", 2, -5},
		{"without a metric, on the way up", "40 40 -", 3, 4},
		{"without a metric, on the way down", "5 5 -", 3, 2},
		{"pending, on the way up", "60 pending", 2, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Defaults()
			pods, metrics := mixed(test.pods)
			got, err := o.count(pods, "", metrics, now).byValue(test.current, 20_000, tolerances{0.1, 0.1})
			if err != nil || got.replicas != test.want {
				t.Errorf("of %q it makes %+v (%v), want %d", test.pods, got, err, test.want)
			}
		})
	}
}

func TestTheCountOfPodsSaysHowTheyCount(t *testing.T) {
	o := Defaults()
	pods, metrics := mixed("100m pending - failed:1m never:5m -")
	metrics.put("other", sample{value: 1}, nil)
	metrics.put("p5", sample{}, fmt.Errorf("%q, which is no quantity", "NaN"))
	const want = `1 Pod counted by their metrics, 2 not ready (p1, p4), 2 without a metric (p2, p5), 1 ended or being deleted (p3), ` +
		`the metric of Pod p5 cannot be used: "NaN", which is no quantity, 1 metric is of no Pod of the target`
	if got := o.count(pods, corev1.ResourceCPU, metrics, now).String(); got != want {
		t.Errorf("it says %s\nwant    %s", got, want)
	}
}

func TestWhatPodsRequest(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := func(change func(*corev1.PodSpec)) *corev1.Pod {
		p := running("p0", nil)
		change(&p.Spec)
		return p
	}
	cpuOf := func(n string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
	}
	sidecar := func(s *corev1.PodSpec) {
		s.InitContainers = []corev1.Container{
			{Name: "mesh", RestartPolicy: &always, Resources: cpuOf("30m")}, {Name: "init", Resources: cpuOf("1")},
		}
	}
	for _, test := range []struct {
		name, container string
		change          func(*corev1.PodSpec)
		want            string
	}{
		{"its containers", "", func(*corev1.PodSpec) {}, "100 <nil>"},
		{"its sidecars too, and no other init containers", "", sidecar, "130 <nil>"},
		{"one container", "mesh", sidecar, "30 <nil>"},
		{"one that it has not", "db", sidecar, "0 container db not found in Pod p0"},
		{"nothing", "", func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests = nil }, "0 missing request for cpu in container main of Pod p0"},
		{"as a Pod", "", func(s *corev1.PodSpec) { s.Resources = new(cpuOf("500m")) }, "500 <nil>"},
		{"as a Pod, but not this", "", func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
			s.Containers[0].Resources.Requests = nil
		}, "0 missing pod-level request for cpu in Pod p0"},
	} {
		got, err := requestOf(pod(test.change), corev1.ResourceCPU, test.container)
		if text := fmt.Sprint(got, " ", err); text != test.want {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
	}
}

func TestPodsThatDoNotCountNeedNoRequest(t *testing.T) {
	o := Defaults()
	pods, metrics := mixed("100m succeeded:1m")
	pods[1].Spec.Containers[0].Resources.Requests = nil
	if got, err := o.count(pods, corev1.ResourceCPU, metrics, now).byUtilization(1, 50, tolerances{}, corev1.ResourceCPU, ""); err != nil || got.replicas != 2 {
		t.Errorf("it makes %+v (%v)", got, err)
	}
}

func TestReplicasByAValueOfNoPod(t *testing.T) {
	ready, _ := mixed("1m 1m 1m never:1m")
	for _, test := range []struct {
		name    string
		current int32
		ratio   float64
		pods    []*corev1.Pod
		want    string
	}{
		{"the ready Pods count", 4, 2, ready, "6 <nil>"},
		{"within the tolerance", 4, 1.1, ready, "4 <nil>"},
		{"from zero", 0, 2.5, nil, "3 <nil>"},
		{"to zero", 4, 0, ready, "0 <nil>"},
		{"without Pods", 4, 2, nil, "0 unable to calculate ready pods: no pods returned by selector while calculating replica count"},
		{"huge", 4, 1e300, ready, "2147483647 <nil>"},
	} {
		got, err := byRatio(test.current, test.ratio, tolerances{0.1, 0.1}, test.pods)
		if text := fmt.Sprint(got, " ", err); text != test.want {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
	}
	for _, test := range []struct {
		name          string
		replicas      int32
		usage, target int64
		want          string
	}{
		{"above the target", 2, 30_000, 10_000, "3 15000"},
		{"within the tolerance", 2, 21_000, 10_000, "2 10500"},
		{"from zero", 0, 25_000, 10_000, "3 25000"},
		{"nothing, at zero", 0, 0, 10_000, "0 0"},
		{"huge", 2, 1<<63 - 1, 1, "2147483647 9223372036854775807"},
	} {
		wanted, share := byShare(test.replicas, test.usage, test.target, tolerances{0.1, 0.1})
		if text := fmt.Sprint(wanted, " ", share); text != test.want {
			t.Errorf("shared, %s: %s, want %s", test.name, text, test.want)
		}
	}
}

// decided returns a decision about a target of a size by external metrics. An error is "?".
func decided(t *testing.T, size int32, recommended []string, change ...func(*autoscalingv2.HorizontalPodAutoscaler)) plan {
	t.Helper()
	o := Defaults()
	hpa := autoscaler(1, 10, change...)
	hpa.Spec.Metrics = nil
	s := &snapshot{hpa: hpa, now: now, history: history{}, scale: &autoscalingv1.Scale{
		Spec: autoscalingv1.ScaleSpec{Replicas: size}, Status: autoscalingv1.ScaleStatus{Replicas: size},
	}}
	for _, r := range recommended {
		hpa.Spec.Metrics = append(hpa.Spec.Metrics, queue("1"))
		if r == "?" {
			s.readings = append(s.readings, reading{err: fmt.Errorf("it is away")})
			continue
		}
		s.readings = append(s.readings, reading{value: milli(resource.MustParse(r))})
	}
	return o.decide(s)
}

func TestOfSeveralMetricsTheLargestProposalCounts(t *testing.T) {
	for _, test := range []struct {
		name        string
		recommended []string
		want        int32
		condition   string
	}{
		{"the larger one", []string{"3", "5"}, 5, "ScalingActive=True ValidMetricFound"},
		{"whatever the order", []string{"5", "3"}, 5, "ScalingActive=True ValidMetricFound"},
		{"one is away, on the way up", []string{"?", "6"}, 6, "ScalingActive=True ValidMetricFound"},
		{"one is away, on the way down", []string{"?", "2"}, 0, "ScalingActive=False FailedGetExternalMetric: the HPA was unable to compute the replica count: unable to get external metric shop/queue/nil: it is away"},
		{"all are away", []string{"?", "?"}, 0, "ScalingActive=False FailedGetExternalMetric"},
		{"none are left", nil, 0, "ScalingActive=False InvalidMetricSourceType"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := decided(t, 4, test.recommended)
			if p.rescale && p.replicas != test.want || p.rescale != (test.want != 0) {
				t.Errorf("it scales: %t, to %d, want %d", p.rescale, p.replicas, test.want)
			}
			if got := conditions(&autoscalingv2.HorizontalPodAutoscaler{Status: p.status}); !strings.Contains(got, test.condition) {
				t.Errorf("the conditions are\n%s\nwant %s", got, test.condition)
			}
			if len(p.status.CurrentMetrics) != len(test.recommended) {
				t.Errorf("the status has %d metrics, of %d", len(p.status.CurrentMetrics), len(test.recommended))
			}
		})
	}
}

func TestTheBoundsOfTheSpecAndTheDefaultRate(t *testing.T) {
	for _, test := range []struct {
		name        string
		size        int32
		recommended string
		want        int32
		condition   string
	}{
		{"above the maximum", 8, "40", 10, "ScalingLimited=True TooManyReplicas"},
		{"faster than twice", 3, "9", 6, "ScalingLimited=True ScaleUpLimit"},
		{"up to four at once", 1, "9", 4, "ScalingLimited=True ScaleUpLimit"},
		{"below the minimum", 2, "0", 1, "ScalingLimited=True TooFewReplicas"},
		{"the size is above the maximum", 12, "12", 10, "AbleToScale=True SucceededGetScale"},
		{"the size is zero", 0, "5", 0, "ScalingActive=False ScalingDisabled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := decided(t, test.size, []string{test.recommended})
			if p.replicas != test.want {
				t.Errorf("it wants %d, want %d", p.replicas, test.want)
			}
			if got := conditions(&autoscalingv2.HorizontalPodAutoscaler{Status: p.status}); !strings.Contains(got, test.condition) {
				t.Errorf("the conditions are\n%s\nwant %s", got, test.condition)
			}
		})
	}
}
