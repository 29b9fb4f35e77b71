// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/internal/shortlist"
)

// mostNamed bounds the Pods, or the owners of Pods, that one part of a condition names.
const mostNamed = 3

// census is how the Pods of a target count for one metric, by their names.
type census struct {
	pods map[string]*corev1.Pod // all that the selector selects

	measured map[string]int64 // count with their metric
	unready  []string         // count as 0 when others are above the target, and else not at all
	missing  []string         // have no metric
	ignored  []string         // have ended, or are being deleted: they do not count
	unusable map[string]string
	// strangers is how many metrics are of no Pod of the target.
	strangers int
}

// count sorts the Pods of a target by how they count for a metric. of is the resource that is
// measured; empty for another metric.
// Source: k8s.io/kubernetes/pkg/controller/podautoscaler, groupPods. There, Pods that have
// succeeded count, and so do metrics of no Pod.
func (o *Options) count(pods []*corev1.Pod, of corev1.ResourceName, metrics samples, now time.Time) census {
	c := census{pods: map[string]*corev1.Pod{}, measured: map[string]int64{}, unusable: map[string]string{}}
	for _, pod := range pods {
		c.pods[pod.Name] = pod
		metric, found := metrics.of[pod.Name]
		switch {
		case pod.DeletionTimestamp != nil || podstate.Ended(pod):
			c.ignored = append(c.ignored, pod.Name)
		case pod.Status.Phase == corev1.PodPending:
			c.unready = append(c.unready, pod.Name)
		case !found:
			c.missing = append(c.missing, pod.Name)
			if why, known := metrics.unusable[pod.Name]; known {
				c.unusable[pod.Name] = why
			}
		case of == corev1.ResourceCPU && !o.settled(pod, metric, now):
			c.unready = append(c.unready, pod.Name)
		default:
			c.measured[pod.Name] = metric.value
		}
	}
	for name := range metrics.of {
		if c.pods[name] == nil {
			c.strangers++
		}
	}
	for _, names := range [][]string{c.unready, c.missing, c.ignored} {
		slices.Sort(names)
	}
	return c
}

// settled reports whether the CPU usage of a Pod is that of its work, and not of its start.
func (o *Options) settled(pod *corev1.Pod, metric sample, now time.Time) bool {
	ready := podstate.Condition(pod, corev1.PodReady)
	if ready == nil || pod.Status.StartTime == nil {
		return false
	}
	started, turned := pod.Status.StartTime.Time, ready.LastTransitionTime.Time
	if started.Add(o.CPUInitializationPeriod).After(now) {
		// While it may still initialize, a window must lie within the time in which it is ready.
		return ready.Status != corev1.ConditionFalse && !metric.at.Before(turned.Add(metric.window))
	}
	// Later, a Pod that is not ready counts if it was ready once.
	return ready.Status != corev1.ConditionFalse || !started.Add(o.InitialReadinessDelay).After(turned)
}

// readyPods returns how many Pods of a target run and are ready.
func readyPods(pods []*corev1.Pod) (n int) {
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning && podstate.Ready(pod) {
			n++
		}
	}
	return n
}

// String says which Pods were counted, and how, for a condition.
func (c census) String() string {
	parts := []string{fmt.Sprintf("%s counted by their metrics", pods(len(c.measured)))}
	say := func(names []string, how string) {
		if len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(names), how, shortlist.Join(names, mostNamed)))
		}
	}
	say(c.unready, "not ready")
	say(c.missing, "without a metric")
	say(c.ignored, "ended or being deleted")
	for _, name := range slices.Sorted(maps.Keys(c.unusable)) {
		parts = append(parts, fmt.Sprintf("the metric of Pod %s cannot be used: %s", name, c.unusable[name]))
		break // one tells what is wrong
	}
	if c.strangers > 0 {
		metrics := "1 metric is"
		if c.strangers > 1 {
			metrics = fmt.Sprintf("%d metrics are", c.strangers)
		}
		parts = append(parts, metrics+" of no Pod of the target")
	}
	return strings.Join(parts, ", ")
}

func pods(n int) string {
	if n == 1 {
		return "1 Pod"
	}
	return fmt.Sprintf("%d Pods", n)
}
