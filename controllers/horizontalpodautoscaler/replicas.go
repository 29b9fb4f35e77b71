// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"maps"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// tolerances are how far the ratio of a metric to its target may be from 1 without a change of size.
type tolerances struct{ down, up float64 }

// tolerancesOf returns those of spec.behavior, and else those of the flag.
func (o *Options) tolerancesOf(hpa *autoscalingv2.HorizontalPodAutoscaler) tolerances {
	t := tolerances{o.Tolerance, o.Tolerance}
	if b := hpa.Spec.Behavior; b != nil {
		if b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
			t.down = b.ScaleDown.Tolerance.AsApproximateFloat64()
		}
		if b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
			t.up = b.ScaleUp.Tolerance.AsApproximateFloat64()
		}
	}
	return t
}

func (t tolerances) allow(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// Errors of metrics of Pods.
// Source of the texts: k8s.io/kubernetes/pkg/controller/podautoscaler.
var (
	errNoPods    = errors.New("no pods returned by selector while calculating replica count")
	errNoMetrics = errors.New("did not receive metrics for targeted pods (pods might be unready)")
	errNoMatch   = errors.New("no metrics returned matched known pods")
	errTarget    = errors.New("the target of the metric is not greater than 0")
)

// scalePerPod returns how many replicas a metric that each Pod has asks for. ratio is that of the
// Pods' values to the target. fallback is what a Pod without a metric counts for on the way down.
//
// Pods that have no metric, or are not ready, are counted so that they make the change smaller:
// as little on the way up, and as much on the way down. If that turns the direction, the size stays.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, GetResourceReplicas and
// calcPlainMetricReplicas.
func (c census) scalePerPod(current int32, t tolerances, ratio func(map[string]int64) float64, fallback func(pod string) int64) int32 {
	is := ratio(c.measured)
	withUnready := len(c.unready) > 0 && is > 1
	if !withUnready && len(c.missing) == 0 {
		if t.allow(is) {
			return current
		}
		return toReplicas(is * float64(len(c.measured)))
	}
	values := maps.Clone(c.measured)
	for _, name := range c.missing {
		switch {
		case is < 1:
			values[name] = fallback(name)
		case is > 1:
			values[name] = 0
		}
	}
	if withUnready {
		for _, name := range c.unready {
			values[name] = 0
		}
	}
	careful := ratio(values)
	if t.allow(careful) || is < 1 && careful > 1 || is > 1 && careful < 1 {
		return current
	}
	replicas := toReplicas(careful * float64(len(values)))
	if careful < 1 && replicas > current || careful > 1 && replicas < current {
		return current
	}
	return replicas
}

// perPod is what a metric that each Pod has asks for.
type perPod struct {
	replicas int32
	average  int64 // of the Pods that are measured, in thousandths
	percent  int32 // of what they request; for a target in percent
}

// byUtilization returns how many replicas a resource asks for whose target is in percent of what the
// Pods request.
func (c census) byUtilization(current, target int32, t tolerances, of corev1.ResourceName, container string) (perPod, error) {
	if err := c.check(); err != nil {
		return perPod{}, err
	}
	if target <= 0 {
		return perPod{}, errTarget
	}
	requests, err := c.requestsOf(of, container)
	if err != nil {
		return perPod{}, err
	}
	usage, requested := sum(c.measured, nil), sum(requests, c.measured)
	if requested == 0 {
		return perPod{}, errNoMatch
	}
	replicas := c.scalePerPod(current, t, func(values map[string]int64) float64 {
		return float64(percent(sum(values, nil), sum(requests, values))) / float64(target)
	}, func(pod string) int64 {
		return int64(min(float64(requests[pod])*float64(max(100, target))/100, math.MaxInt64/2))
	})
	return perPod{replicas: replicas, average: usage / int64(len(c.measured)), percent: percent(usage, requested)}, nil
}

// byValue returns how many replicas a metric asks for whose target is an average over the Pods.
func (c census) byValue(current int32, target int64, t tolerances) (perPod, error) {
	if err := c.check(); err != nil {
		return perPod{}, err
	}
	if target <= 0 {
		return perPod{}, errTarget
	}
	average := func(values map[string]int64) int64 { return sum(values, nil) / int64(len(values)) }
	replicas := c.scalePerPod(current, t,
		func(values map[string]int64) float64 { return float64(average(values)) / float64(target) },
		func(string) int64 { return target })
	return perPod{replicas: replicas, average: average(c.measured)}, nil
}

// check returns why nothing can be computed from the Pods.
func (c census) check() error {
	switch {
	case len(c.pods) == 0:
		return errNoPods
	case len(c.measured) == 0 && len(c.unusable) > 0:
		return fmt.Errorf("%w: %s", errNoMetrics, c)
	case len(c.measured) == 0:
		return errNoMetrics
	}
	return nil
}

// sum adds values up: those whose keys are in among, or all if it is nil.
func sum(values, among map[string]int64) (total int64) {
	for name, value := range values {
		if _, in := among[name]; in || among == nil {
			total = add(total, value)
		}
	}
	return total
}

// percent returns how many percent of a whole a part is, rounded down as upstream does.
func percent(part, whole int64) int32 {
	if whole == 0 {
		return 0
	}
	if part > math.MaxInt64/100 {
		return int32(min(float64(part)/float64(whole)*100, math.MaxInt32))
	}
	return int32(min(part*100/whole, math.MaxInt32))
}

// byRatio returns how many replicas a metric asks for that is of no Pod, by its ratio to the target.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, getUsageRatioReplicaCount.
func byRatio(current int32, ratio float64, t tolerances, pods []*corev1.Pod) (int32, error) {
	switch {
	case current == 0:
		return toReplicas(ratio), nil
	case t.allow(ratio):
		return current, nil
	case len(pods) == 0:
		return 0, fmt.Errorf("unable to calculate ready pods: %w", errNoPods)
	}
	return toReplicas(ratio * float64(readyPods(pods))), nil
}

// byShare returns how many replicas a metric asks for that is of no Pod and is shared by the replicas,
// and the share of each.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, GetObjectPerPodMetricReplicas.
func byShare(replicas int32, usage, target int64, t tolerances) (wanted int32, share int64) {
	wanted = replicas
	if ratio := float64(usage) / (float64(target) * float64(replicas)); !t.allow(ratio) {
		wanted = toReplicas(float64(usage) / float64(target))
	}
	if usage == math.MaxInt64 || replicas == 0 {
		return wanted, usage
	}
	return wanted, int64(math.Ceil(float64(usage) / float64(replicas)))
}
