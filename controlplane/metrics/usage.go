// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// Window is the time that a sample of usage covers. An autoscaler counts the CPU usage of
// a new Pod only if the whole window lies after the moment at which the Pod became ready,
// so it is short. Those of metrics-server are 10 s and more.
const Window = time.Second

// What a container uses that requests nothing and has no annotation: that of a small
// program that has nothing to do.
const (
	idleCPU    = 1        // thousandths of a CPU
	idleMemory = 16 << 20 // bytes
)

// snapshot is the state of the cluster that one request is answered from.
type snapshot struct {
	now  time.Time
	pods []*corev1.Pod

	sharers map[types.UID]int64 // ready Pods by their controller
}

func newSnapshot(pods []*corev1.Pod, now time.Time) *snapshot {
	s := &snapshot{now: now, pods: pods, sharers: map[types.UID]int64{}}
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && takesLoad(pod) {
			s.sharers[owner.UID]++
		}
	}
	return s
}

// takesLoad reports whether a Pod takes a part of a load: it is ready and stays so.
func takesLoad(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// valueOf returns the value for one Pod, in thousandths: the part of the Pod if the value
// is shared.
func (s *snapshot) valueOf(pod *corev1.Pod, v Value, since time.Time) int64 {
	value := v.At(s.now.Sub(since))
	if !v.Shared() {
		return value
	}
	if !takesLoad(pod) {
		return 0
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return value / s.sharers[owner.UID]
	}
	return value
}

// podMetrics returns what a Pod uses. It reports false if there are no metrics of it: no
// container runs, or the annotations say so.
func (s *snapshot) podMetrics(pod *corev1.Pod) (metricsv1beta1.PodMetrics, bool) {
	m := metricsv1beta1.PodMetrics{
		TypeMeta: metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: "PodMetrics"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, CreationTimestamp: metav1.NewTime(s.now),
		},
		Timestamp: metav1.NewTime(s.now),
		Window:    metav1.Duration{Duration: Window},
	}
	for i := range pod.Spec.Containers {
		s.add(&m, pod, &pod.Spec.Containers[i], pod.Status.ContainerStatuses)
	}
	for i := range pod.Spec.InitContainers {
		s.add(&m, pod, &pod.Spec.InitContainers[i], pod.Status.InitContainerStatuses)
	}
	return m, len(m.Containers) > 0
}

// add adds a container to the metrics of its Pod if it runs and its usage is known.
func (s *snapshot) add(m *metricsv1beta1.PodMetrics, pod *corev1.Pod, c *corev1.Container, statuses []corev1.ContainerStatus) {
	since, runs := runningSince(statuses, c.Name)
	if !runs {
		return
	}
	usage := corev1.ResourceList{}
	if milli, ok := s.usage(pod, c, UsageCPU, corev1.ResourceCPU, since); ok {
		usage[corev1.ResourceCPU] = *resource.NewMilliQuantity(milli, resource.DecimalSI)
	}
	if milli, ok := s.usage(pod, c, UsageMemory, corev1.ResourceMemory, since); ok {
		usage[corev1.ResourceMemory] = *resource.NewQuantity(milli/1000, resource.BinarySI)
	}
	if len(usage) > 0 {
		m.Containers = append(m.Containers, metricsv1beta1.ContainerMetrics{Name: c.Name, Usage: usage})
	}
}

// usage returns what a container uses of a resource, in thousandths.
func (s *snapshot) usage(pod *corev1.Pod, c *corev1.Container, annotation string, of corev1.ResourceName, since time.Time) (milli int64, known bool) {
	if v, said := usageOf(pod, annotation, c.Name); said {
		return s.valueOf(pod, v, since), v.Exists()
	}
	if requested, ok := c.Resources.Requests[of]; ok {
		return requested.MilliValue() / 2, true
	}
	if of == corev1.ResourceCPU {
		return idleCPU, true
	}
	return idleMemory * 1000, true
}

func runningSince(statuses []corev1.ContainerStatus, container string) (time.Time, bool) {
	for i := range statuses {
		if s := &statuses[i]; s.Name == container && s.State.Running != nil {
			return s.State.Running.StartedAt.Time, true
		}
	}
	return time.Time{}, false
}

// usageByNode returns what the Pods of each Node use together.
func (s *snapshot) usageByNode() map[string]corev1.ResourceList {
	out := map[string]corev1.ResourceList{}
	for _, pod := range s.pods {
		m, ok := s.podMetrics(pod)
		if !ok {
			continue
		}
		sum, ok := out[pod.Spec.NodeName]
		if !ok {
			sum = noUsage()
			out[pod.Spec.NodeName] = sum
		}
		for _, c := range m.Containers {
			for name, used := range c.Usage {
				total := sum[name]
				total.Add(used)
				sum[name] = total
			}
		}
	}
	return out
}

func noUsage() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(0, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(0, resource.BinarySI),
	}
}

func (s *snapshot) nodeMetrics(node *corev1.Node, usage corev1.ResourceList) metricsv1beta1.NodeMetrics {
	if usage == nil {
		usage = noUsage()
	}
	return metricsv1beta1.NodeMetrics{
		TypeMeta:   metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: "NodeMetrics"},
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, CreationTimestamp: metav1.NewTime(s.now)},
		Timestamp:  metav1.NewTime(s.now),
		Window:     metav1.Duration{Duration: Window},
		Usage:      usage,
	}
}
