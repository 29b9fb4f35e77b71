// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
)

// autoscaled is a ReplicaSet that grows with a queue, by one Pod at a time.
type autoscaled struct {
	*stage
	wanted atomic.Int32
}

const (
	// queueOfPod is how long the queue of one Pod may be.
	queueOfPod = 10
	// queueLength states an external metric: see docs/simulated-nodes.md.
	queueLength = "sim.setpoint.io/metric.queue_length"
)

func newAutoscaled(s *stage) work {
	a := &autoscaled{stage: s}
	a.wanted.Store(2)
	one, labels := int32(1), map[string]string{"app": "worker"}
	_, err := client.For[*corev1.ConfigMap](s.Client).Create(s.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "queue", Annotations: map[string]string{queueLength: a.length()}},
	})
	if err == nil {
		_, err = client.For[*appsv1.ReplicaSet](s.Client).Create(s.t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "worker"},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: release(1).template(labels),
			},
		})
	}
	if err == nil {
		_, err = client.For[*autoscalingv2.HorizontalPodAutoscaler](s.Client).Create(s.t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "worker"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "worker"},
				MinReplicas:    &one, MaxReplicas: 10,
				Metrics: []autoscalingv2.MetricSpec{{
					Type: autoscalingv2.ExternalMetricSourceType,
					External: &autoscalingv2.ExternalMetricSource{
						Metric: autoscalingv2.MetricIdentifier{Name: "queue_length"},
						Target: autoscalingv2.MetricTarget{
							Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(queueOfPod, resource.DecimalSI),
						},
					},
				}},
			},
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// length is how long the queue is that needs as many Pods as are wanted.
func (a *autoscaled) length() string { return fmt.Sprint(a.wanted.Load() * queueOfPod) }

func (a *autoscaled) change() {
	a.t.Helper()
	a.wanted.Add(1)
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{queueLength: a.length()}}})
	if err == nil {
		_, err = client.For[*corev1.ConfigMap](a.Client).Patch(a.t.Context(), a.key("queue"), patch)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// begun reports whether the ReplicaSet is to have another Pod.
func (a *autoscaled) begun() bool {
	set, err := client.For[*appsv1.ReplicaSet](a.Client).Get(a.t.Context(), a.key("worker"))
	return err == nil && *set.Spec.Replicas == a.wanted.Load()
}

func (a *autoscaled) missing() string {
	want := a.wanted.Load()
	set, err := client.For[*appsv1.ReplicaSet](a.Client).Get(a.t.Context(), a.key("worker"))
	if err != nil {
		return err.Error()
	}
	if *set.Spec.Replicas != want || set.Status.AvailableReplicas != want {
		return fmt.Sprintf("the ReplicaSet has %d available Pods, of %d that it is to have and %d that the queue needs", set.Status.AvailableReplicas, *set.Spec.Replicas, want)
	}
	hpa, err := client.For[*autoscalingv2.HorizontalPodAutoscaler](a.Client).Get(a.t.Context(), a.key("worker"))
	if err != nil {
		return err.Error()
	}
	if s := hpa.Status; s.CurrentReplicas != want || s.DesiredReplicas != want {
		return fmt.Sprintf("the status of the autoscaler is %+v", s)
	}
	return ""
}

// inBounds holds that the Pods become more by one at a time, and never fewer: the queue does not
// become shorter.
func (a *autoscaled) inBounds(pods map[types.UID]*corev1.Pod) error {
	count, want := int32(0), a.wanted.Load()
	for _, pod := range pods {
		if alive(pod) {
			count++
		}
	}
	if count < want-1 || count > want {
		return fmt.Errorf("%d Pods, and the queue needs %d", count, want)
	}
	return nil
}
